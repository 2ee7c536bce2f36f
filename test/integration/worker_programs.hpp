#ifndef COACCEL_TEST_UNIT_ISOLATED_WORKER_PROGRAMS_HPP
#define COACCEL_TEST_UNIT_ISOLATED_WORKER_PROGRAMS_HPP

#include "support/temporary_folder.hpp"
#include "worker/process/find_program.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace test {

/// The path of a worker program that can be replaced by another, as when a package is updated.
class program_link {
public:
    program_link()
    {
        auto real = coaccel::worker::find_program(nullptr);
        REQUIRE(real);
        lead_to(real.value());
    }

    /// Applies to workers that are started from now on.
    void lead_to(const std::filesystem::path& program) const
    {
        std::filesystem::create_symlink(program, folder() / "next");
        std::filesystem::rename(folder() / "next", file_);
    }

    const char* path() const noexcept { return file_.c_str(); }
    std::filesystem::path folder() const { return folder_.path(); }

private:
    temporary_folder folder_;
    std::string file_ = folder_ / "worker";
};

/// A worker program that works until it is made slow; workers started from then on never become ready.
class slow_program : public program_link {
public:
    slow_program()
    {
        const auto script = folder() / "slow";
        std::ofstream(script) << "#!/bin/sh\necho '" << sign() << "' >&2\nexec sleep 1000\n";
        std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    }

    void be_slow() const { lead_to(folder() / "slow"); }

    /// The line that a slow worker writes to its standard error.
    std::string sign() const { return folder().filename().string() + " is slow"; }
};

} // namespace test

#endif
