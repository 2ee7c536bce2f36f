#include "server/repository/file_content.hpp"
#include "unit/server/server_fixture.hpp"

#include <algorithm>
#include <fstream>
#include <sys/stat.h>

namespace test_server_repository_content {
namespace {

namespace server = coaccel::server;

void write_text(const std::string& path, const std::string& text)
{
    std::ofstream(path, std::ios::trunc) << text;
}

server::file_identity identity_at(const std::string& path)
{
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return server::identity_of(status);
}

bool has_text(const server::file_content& c, const std::string& text)
{
    return std::ranges::equal(c.bytes, std::as_bytes(std::span(text)));
}

} // namespace

TEST_SUITE_BEGIN("server.file_content");

TEST_CASE("the content of a file stays readable after the file was shortened in place")
{
    const test::temporary_folder folder;
    const auto path = folder / "model.plan";
    const std::string text(3 * 4096 + 5, 'a');
    write_text(path, text);
    const auto content = server::read_content(path, identity_at(path));
    REQUIRE_MESSAGE(content, content.error().message());
    // As cp does. A mapping would raise SIGBUS here.
    write_text(path, "");
    CHECK(has_text(content.value(), text));
}

TEST_CASE("a file that is not the one that the scan has seen is refused")
{
    const test::temporary_folder folder;
    const auto path = folder / "model.plan";
    write_text(path, "first");
    auto seen = identity_at(path);
    write_text(path, "second");
    auto content = server::read_content(path, seen);
    REQUIRE_FALSE(content);
    CHECK(content.error() == coaccel::errc::file_invalid);
    CHECK(test::contains(content.error().message(), path));
    seen = identity_at(path);
    ++seen.inode;
    CHECK_FALSE(server::read_content(path, seen));
    content = server::read_content(path, identity_at(path));
    REQUIRE(content);
    CHECK(has_text(content.value(), "second"));
    CHECK(server::read_content(folder / "none", seen).error() == coaccel::errc::file_failed);
    CHECK(server::read_content(folder.path(), seen).error() == coaccel::errc::file_failed);
}

TEST_CASE_FIXTURE(test::server_fixture, "a model answers after its file was shortened in place")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    const auto file = std::filesystem::path(folder.path()) / "scale" / "1" / "model.plan";
    write_text(file.string(), "");
    const auto a = ask(test::post("/v2/models/scale/infer", test::json_request("1,0,0,0")));
    CHECK(a.status == 200);
    CHECK_MESSAGE(test::contains(a.body, "\"data\":[2,"), a.body);
}

TEST_SUITE_END();

} // namespace test_server_repository_content
