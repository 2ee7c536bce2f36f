#include "posix/mapped_file.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace test_posix_mapped_file {

namespace {

using namespace coaccel;
using detail::mapped_file;

void write(const std::string& path, std::string_view text)
{
    std::ofstream(path) << text;
}

std::string_view text_of(const mapped_file& f)
{
    return {reinterpret_cast<const char*>(f.bytes().data()), f.bytes().size()};
}

} // namespace

TEST_SUITE_BEGIN("mapped_file");

TEST_CASE("the content stays when the file is removed, replaced or grows")
{
    const test::temporary_folder folder;
    const std::string path = folder / "file";
    write(path, "content");
    const auto file = mapped_file::open(path).value();
    CHECK(text_of(*file) == "content");
    CHECK_FALSE(file->check(file->bytes()));

    std::ofstream(path, std::ios::app) << "more";
    CHECK_FALSE(file->check(file->bytes()));

    write(folder / "other", "x");
    std::filesystem::rename(folder / "other", path);
    CHECK_FALSE(file->check(file->bytes()));
    CHECK(text_of(*file) == "content");

    std::filesystem::remove(path);
    CHECK_FALSE(file->check(file->bytes()));
}

TEST_CASE("the check finds that a file was shortened, and names it")
{
    const test::temporary_folder folder;
    const std::string path = folder / "file";
    write(path, "content");
    const auto file = mapped_file::open(path).value();
    std::filesystem::resize_file(path, 3);
    CHECK_FALSE(file->check(file->bytes().first(3)));
    CHECK_FALSE(file->check(file->bytes().subspan(1, 2)));
    const auto why = file->check(file->bytes().subspan(2, 2));
    CHECK(why == errc::file_failed);
    CHECK(why.message() ==
          "cannot read " + path + ": it has 3 bytes, but 4 are needed: another program has shortened it");
    std::filesystem::resize_file(path, 7);
    CHECK_FALSE(file->check(file->bytes()));
}

TEST_CASE("an empty file has no content")
{
    const test::temporary_folder folder;
    write(folder / "file", "");
    const auto file = mapped_file::open(folder / "file").value();
    CHECK(file->bytes().empty());
    CHECK_FALSE(file->check({}));
}

TEST_CASE("what is no regular file is refused")
{
    const test::temporary_folder folder;
    CHECK(mapped_file::open(folder.path()).error() == errc::file_failed);
    const auto missing = mapped_file::open(folder / "missing");
    CHECK(missing.error() == errc::file_failed);
    CHECK(missing.error().message().find("missing") != std::string::npos);
}

TEST_SUITE_END();

} // namespace test_posix_mapped_file
