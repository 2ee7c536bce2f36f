#include "isolated.hpp"
#include "worker_programs.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace test_integration_program {

using namespace coaccel;
using namespace std::chrono_literals;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

namespace {

namespace fs = std::filesystem;

/// Changes the current directory of the process during its lifetime.
class visit {
public:
    explicit visit(const fs::path& folder) { fs::current_path(folder); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { fs::current_path(before_); }

private:
    const fs::path before_ = fs::current_path();
};

/// Sets COACCEL_WORKER during its lifetime.
class variable {
public:
    explicit variable(const char* value)
    {
        if (const auto* old = std::getenv(name))
            old_ = old;
        ::setenv(name, value, 1);
    }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;
    ~variable()
    {
        if (old_)
            ::setenv(name, old_->c_str(), 1);
        else
            ::unsetenv(name);
    }

private:
    static constexpr const char* name = "COACCEL_WORKER";

    std::optional<std::string> old_;
};

} // namespace

TEST_SUITE_BEGIN("isolated program");

TEST_CASE("a relative worker program is found after the process changed its working directory")
{
    const test::program_link program;
    for (const bool by_option : {true, false}) {
        CAPTURE(by_option);
        auto o = isolated_options();
        o.restart.initial_backoff = 0ms;
        std::optional<isolated_fixture> f;
        {
            const visit there(program.folder());
            std::optional<variable> v;
            if (by_option)
                o.worker.program = "./worker";
            else
                v.emplace("worker");
            f.emplace(o);
        }
        f->send(SIGKILL);
        test::run_until(f->io, [&] {
            const auto s = f->gpu.status();
            return s.generation == generation(2) || s.state == device_state::failed;
        });
        REQUIRE_MESSAGE(f->gpu.status().state != device_state::failed, f->gpu.status().reason.message());
        f->wait_for_generation(2);
        CHECK(f->download(f->upload(numbers(10)).ref()) == numbers(10));
    }
}

TEST_SUITE_END();

} // namespace test_integration_program
