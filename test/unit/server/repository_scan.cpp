#include "server/repository/model_scan.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace test_server_repository_scan {
namespace {

namespace fs = std::filesystem;
namespace server = coaccel::server;

struct model_folder {
    test::temporary_folder at;

    void file(const std::string& path, const std::string& content = "x") const
    {
        const fs::path whole = fs::path(at.path()) / path;
        fs::create_directories(whole.parent_path());
        std::ofstream(whole, std::ios::binary) << content;
    }
    fs::path operator/(const std::string& path) const { return fs::path(at.path()) / path; }
    server::model_scan scan() const { return server::scan_models(at.path()); }

    /// Why the entry is no part of a model; empty: there is no such message.
    std::string problem(const std::string& path) const
    {
        const auto begin = (*this / path).string() + ": ";
        for (const auto& p : scan().problems)
            if (p.starts_with(begin))
                return p.substr(begin.size());
        return {};
    }
};

} // namespace

TEST_SUITE_BEGIN("server repository scan");

TEST_CASE("models and versions are found with the identity of their files")
{
    const model_folder f;
    f.file("digits/1/model.plan", "abc");
    f.file("digits/12/model.plan", "abcd");
    f.file("other-model_2.0/18446744073709551615/model.plan");
    f.file("digits/1/labels.txt");
    f.file(".hidden/1/model.plan");
    f.file("digits/.2/model.plan");
    const auto scan = f.scan();
    CHECK(scan.readable);
    CHECK(scan.problems.empty());
    REQUIRE(scan.models.size() == 2);
    const auto& digits = scan.models.at("digits").versions;
    REQUIRE(digits.size() == 2);
    CHECK(digits.at(1).size == 3);
    CHECK(digits.at(12).size == 4);
    struct stat status{};
    REQUIRE(::stat((f / "digits/1/model.plan").c_str(), &status) == 0);
    CHECK(digits.at(1).inode == status.st_ino);
    CHECK(scan.models.at("other-model_2.0").versions.contains(18446744073709551615u));
    CHECK(f.scan() == scan);
    CHECK(server::model_path(f.at.path(), "digits", 12) == (f / "digits/12/model.plan").string());
}

TEST_CASE("a file that is replaced or written has another identity")
{
    const model_folder f;
    f.file("m/1/model.plan", "abc");
    const auto first = f.scan();
    f.file("m/1/new", "abd");
    fs::last_write_time(f / "m/1/new", fs::last_write_time(f / "m/1/model.plan"));
    fs::rename(f / "m/1/new", f / "m/1/model.plan");
    const auto second = f.scan();
    CHECK(second != first);
    fs::last_write_time(f / "m/1/model.plan", fs::last_write_time(f / "m/1/model.plan") + std::chrono::nanoseconds(1));
    CHECK(f.scan() != second);
}

TEST_CASE("odd entries are reported and do no harm")
{
    const model_folder f;
    f.file("good/1/model.plan");
    f.file("file");
    f.file("bad name/1/model.plan");
    f.file("good/01/model.plan");
    f.file("good/0/model.plan");
    f.file("good/-1/model.plan");
    f.file("good/v2/model.plan");
    f.file("good/18446744073709551616/model.plan");
    f.file("good/README");
    f.file("good/7");
    f.file("good/3/plan.model");
    f.file("good/4/model.plan/file");
    f.file("good/5/model.plan", "");
    fs::create_directories(f / "none");
    fs::create_symlink("nowhere", f / "link");
    fs::create_symlink("1", f / "good/9");
    REQUIRE(::mkfifo((f / "pipe").c_str(), 0600) == 0);
    fs::create_directories(f / "good/6");
    REQUIRE(::mkfifo((f / "good/6/model.plan").c_str(), 0600) == 0);
    const auto scan = f.scan();
    CHECK(scan.readable);
    REQUIRE(scan.models.size() == 2);
    CHECK(scan.models.at("none").versions.empty());
    // A link to another version is one.
    CHECK(scan.models.at("good").versions.size() == 2);
    CHECK(scan.models.at("good").versions.contains(9));
    const auto no_version = "it is no version: a folder whose name is a number from 1";
    for (const char* name : {"good/01", "good/0", "good/-1", "good/v2", "good/18446744073709551616", "good/README"})
        CHECK(f.problem(name) == no_version);
    CHECK(f.problem("file") == "it is no folder; a model is a folder with versions");
    CHECK(f.problem("pipe") == "it is no folder; a model is a folder with versions");
    CHECK(f.problem("bad name").starts_with("it is no name of a model"));
    CHECK(f.problem("good/7") == "it is no folder; a version is a folder with the file model.plan");
    CHECK(f.problem("good/3/model.plan") == "the file is missing");
    CHECK(f.problem("good/4/model.plan") == "it is not a regular file");
    CHECK(f.problem("good/5/model.plan") == "the file is empty");
    CHECK(f.problem("good/6/model.plan") == "it is not a regular file");
    CHECK(f.problem("none") == "it has no version with a file");
    CHECK(f.problem("link") == "it leads nowhere");
    CHECK(scan.problems.size() == 16);
}

TEST_CASE("control characters in names do not reach the messages")
{
    const model_folder f;
    f.file("a\n\x1b[31mb/1/model.plan");
    REQUIRE(f.scan().problems.size() == 1);
    CHECK(f.scan().problems[0].find("a\\x0a\\x1b[31mb: it is no name") != std::string::npos);
}

TEST_CASE("a folder that is gone, or is no folder, is not readable")
{
    const model_folder f;
    f.file("file");
    for (const char* name : {"none", "file"}) {
        const auto scan = server::scan_models((f / name).string());
        CHECK(!scan.readable);
        CHECK(scan.models.empty());
        REQUIRE(scan.problems.size() == 1);
        CHECK(scan.problems[0].starts_with((f / name).string() + ": the folder cannot be read: "));
    }
}

TEST_CASE("a model that cannot be read is marked")
{
    // Root may read everything.
    if (::geteuid() == 0)
        return;
    const model_folder f;
    f.file("m/1/model.plan");
    fs::permissions(f / "m", fs::perms::none);
    const auto scan = f.scan();
    fs::permissions(f / "m", fs::perms::owner_all);
    CHECK(scan.readable);
    CHECK(!scan.models.at("m").readable);
}

TEST_CASE("a link that leads in a circle leaves the model in doubt")
{
    const model_folder f;
    f.file("m/1/model.plan");
    fs::create_symlink("2", f / "m/2");
    const auto scan = f.scan();
    CHECK(!scan.models.at("m").readable);
    CHECK(scan.models.at("m").versions.size() == 1);
}

TEST_SUITE_END();

} // namespace test_server_repository_scan
