#include "posix/trusted_file.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace test_posix_trusted_file {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
namespace fs = std::filesystem;

constexpr ::uid_t somebody_else = 65534;

/// The trust of a process whose program only root and its user can replace, wherever this process runs.
trust strict()
{
    return {.owners = {0, ::geteuid()}, .private_groups = true};
}

/// A program in a folder, and a folder for links beside it; other users cannot write to any of them.
struct place : test::temporary_folder {
    place()
    {
        fs::create_directory(bin);
        fs::create_directory(links);
        std::ofstream(program) << "nothing";
        set(bin, 0755);
        set(links, 0755);
        set(program, 0755);
    }

    static void set(const std::string& file, ::mode_t mode) { REQUIRE(::chmod(file.c_str(), mode) == 0); }

    /// Returns an empty string if the file is accepted and is the program.
    std::string why(const std::string& file, const trust& whom = strict()) const
    {
        const auto checked = check_file(file, whom);
        if (checked.why.empty())
            CHECK(checked.path == program);
        return checked.why;
    }

    const std::string root = fs::canonical(path()).string();
    const std::string bin = root + "/bin";
    const std::string links = root + "/links";
    const std::string program = bin + "/program";
};

} // namespace

TEST_SUITE_BEGIN("trusted_file");

TEST_CASE("a program that only trusted users can change is accepted under its resolved path")
{
    const place p;
    CHECK(p.why(p.program) == "");
    CHECK(p.why(p.root + "/links/.././bin//program") == "");
    fs::create_symlink(p.program, p.links + "/absolute");
    fs::create_symlink("../bin/program", p.links + "/relative");
    fs::create_symlink("relative", p.links + "/twice");
    fs::create_symlink("../bin", p.links + "/folder");
    for (const char* link : {"absolute", "relative", "twice", "folder/program"}) {
        CAPTURE(link);
        CHECK(p.why(p.links + '/' + link) == "");
    }
}

TEST_CASE("a program that cannot be run is refused with the reason")
{
    const place p;
    fs::create_symlink("loop", p.links + "/loop");
    std::ofstream(p.links + "/plain") << "nothing";
    p.set(p.links + "/plain", 0644);
    CHECK(p.why("") == "No such file or directory");
    CHECK(p.why(p.root + "/absent") == "No such file or directory");
    CHECK(p.why(p.root + "/absent/program") == "No such file or directory");
    CHECK(p.why(p.program + "/program") == "Not a directory");
    CHECK(p.why(p.bin) == "not a regular file");
    CHECK(p.why(p.links + "/loop") == "Too many levels of symbolic links");
    CHECK(p.why(p.links + "/plain") == "Permission denied");
}

TEST_CASE("a world-writable program or folder anywhere on the path is refused")
{
    const place p;
    fs::create_symlink(p.program, p.links + "/link");
    for (const auto& row : {std::pair{p.program, p.program},
                            {p.bin, p.program},
                            {p.root, p.program},
                            {p.links, p.links + "/link"},
                            {p.bin, p.links + "/link"}}) {
        // Not a structured binding, because clang does not allow a lambda to capture one.
        const auto& changed = row.first;
        const auto& through = row.second;
        CAPTURE(changed);
        p.set(changed, 0757);
        CHECK(p.why(through) == changed + " can be written by everybody");
        p.set(changed, 0755);
        CHECK(p.why(through) == "");
    }
    // Other users cannot rename or remove files there that they do not own.
    p.set(p.bin, 01777);
    CHECK(p.why(p.program) == "");
}

TEST_CASE("a group-writable program is accepted only for the private group of its owner")
{
    const place p;
    p.set(p.program, 0775);
    struct stat found{};
    REQUIRE(::stat(p.program.c_str(), &found) == 0);
    const auto group = p.program + " can be written by its group (" + std::to_string(found.st_gid) + ")";
    CHECK(p.why(p.program) == (found.st_gid == found.st_uid ? "" : group));
    CHECK(p.why(p.program, trust::of_process(detail::rights::elevated)) == group);
    if (::geteuid() == 0) {
        REQUIRE(::chown(p.program.c_str(), ::uid_t(-1), 12345) == 0);
        CHECK(p.why(p.program) == p.program + " can be written by its group (12345)");
    }
}

TEST_CASE("a file or folder of another user is refused")
{
    const place p;
    if (::geteuid() != 0) {
        // The folders on the path belong to root, the rest to this user.
        CHECK(p.why(p.program, {.owners = {0}, .private_groups = true}).find("belongs to another user") !=
              std::string::npos);
        return;
    }
    fs::create_symlink(p.program, p.links + "/link");
    p.set(p.links, 01777);
    auto wider = strict();
    wider.owners.push_back(somebody_else);
    for (const auto& changed : {p.program, p.bin, p.links, p.links + "/link"}) {
        CAPTURE(changed);
        REQUIRE(::lchown(changed.c_str(), somebody_else, ::gid_t(-1)) == 0);
        CHECK(p.why(p.links + "/link") == changed + " belongs to another user (65534)");
        CHECK(p.why(p.links + "/link", wider) == "");
        REQUIRE(::lchown(changed.c_str(), 0, ::gid_t(-1)) == 0);
    }
}

TEST_CASE("users and groups that can replace the running program may replace the worker program")
{
    const place p;
    const auto running = p.links + "/running";
    std::ofstream(running) << "nothing";
    p.set(running, 0755);
    const auto beside = [&] {
        auto whom = strict();
        whom.add_writers_of(running);
        return whom;
    };
    CHECK_FALSE(beside().everybody);
    p.set(p.bin, 0777);
    const auto open = p.bin + " can be written by everybody";
    CHECK(p.why(p.program, beside()) == open);
    // Other users cannot replace files in a sticky folder.
    p.set(p.links, 01777);
    CHECK(p.why(p.program, beside()) == open);
    p.set(p.links, 0777);
    CHECK(p.why(p.program, beside()) == "");
    p.set(p.links, 0755);
    p.set(running, 0757);
    CHECK(p.why(p.program, beside()) == "");
    p.set(running, 0755);
    p.set(p.bin, 0755);
    p.set(p.root, 0777);
    CHECK(p.why(p.program, beside()) == "");
    p.set(p.root, 0755);
    if (::geteuid() != 0) {
        MESSAGE("not checked: changing owners and groups needs root");
        return;
    }
    constexpr ::gid_t group = 12345;
    p.set(p.program, 0775);
    REQUIRE(::chown(p.program.c_str(), somebody_else, group) == 0);
    CHECK(p.why(p.program, beside()) == p.program + " belongs to another user (65534)");
    REQUIRE(::chown(p.links.c_str(), somebody_else, group) == 0);
    // The folder belongs to that group, which cannot write to it.
    CHECK(p.why(p.program, beside()) == p.program + " can be written by its group (12345)");
    p.set(p.links, 02775);
    CHECK(p.why(p.program, beside()) == "");
    REQUIRE(::chown(p.program.c_str(), somebody_else, group + 1) == 0);
    CHECK(p.why(p.program, beside()) == p.program + " can be written by its group (12346)");
}

TEST_CASE("with elevated rights only root and the effective user are trusted")
{
    const auto whom = trust::of_process(detail::rights::elevated);
    CHECK(whom.owners == std::vector<::uid_t>{0, ::geteuid()});
    CHECK_FALSE(whom.private_groups);
    CHECK(whom.groups.empty());
    CHECK_FALSE(whom.everybody);
}

TEST_SUITE_END();

} // namespace test_posix_trusted_file
