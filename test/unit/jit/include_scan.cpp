#include "cuda/jit/include_scan.hpp"

#include "support.hpp"

#include <algorithm>

namespace {

using namespace coaccel;
using names = std::vector<std::string>;

} // namespace

TEST_SUITE_BEGIN("cuda::include_scan");

TEST_CASE("the names after #include are found however they are written")
{
    const struct {
        const char* text;
        names found;
    } rows[] = {
        {"", {}},
        {"#include \"a.h\"", {"a.h"}},
        {"#include <a/b.h>\n#include \"c.h\"\n", {"a/b.h", "c.h"}},
        {"  #\tinclude\t<a>", {"a"}},
        {"#include<a>", {"a"}},
        {"# /* x */ include /* y */ \"a\"", {"a"}},
        {"#\\\n include \\\n <a>", {"a"}},
        {"%:include <a>", {"a"}},
        {"#include_next <a>", {"a"}},
        {"// #include <in_comment>", {"in_comment"}},
        {"#if __has_include(<a.h>) || __has_include(\"b.h\")", {"a.h", "b.h"}},
        {"#define X(a) #a\n#includes\n#include", {}},
        {"#include \"broken\n#include <fine>", {"fine"}},
        {"/* unclosed #", {}},
        {"#include /* unclosed", {}},
    };
    for (const auto& r : rows) {
        CAPTURE(r.text);
        const auto found = cuda::included_names(r.text);
        REQUIRE(found.has_value());
        CHECK(*found == r.found);
    }
    CHECK_FALSE(cuda::included_names("#include MACRO").has_value());
    CHECK_FALSE(cuda::included_names("# include /**/ MACRO(x)").has_value());
}

TEST_CASE("files are followed through folders and through files, cycles included")
{
    const test::temporary_folder folder;
    std::filesystem::create_directory(folder / "sub");
    test::write_file(folder / "a.h", "#include \"sub/b.h\"");
    test::write_file(folder / "sub/b.h", "#include \"c.h\"\n#include \"../a.h\"\n#include <toolkit.h>");
    test::write_file(folder / "sub/c.h", "leaf");
    test::write_file(folder / "d.h", "not reached");
    const auto found = cuda::reachable_files("#include <a.h>", {}, {folder.path()});
    REQUIRE(found.has_value());
    names texts;
    for (const auto& h : *found)
        texts.push_back(h.name);
    std::ranges::sort(texts);
    CHECK(texts == names{folder / "a.h", folder / "sub/b.h", folder / "sub/c.h"});

    test::write_file(folder / "sub/c.h", "#include MACRO");
    CHECK_FALSE(cuda::reachable_files("#include <a.h>", {}, {folder.path()}).has_value());
}

TEST_CASE("headers in memory are followed too")
{
    const test::temporary_folder folder;
    test::write_file(folder / "a.h", "1");
    const auto found = cuda::reachable_files("code", {{"m.h", "#include \"a.h\""}}, {folder.path()});
    REQUIRE(found.has_value());
    REQUIRE(found->size() == 1);
    CHECK(found->front().text == "1");
}

TEST_CASE("a folder in the place of a file is no file")
{
    const test::temporary_folder folder;
    std::filesystem::create_directory(folder / "a.h");
    const auto found = cuda::reachable_files("#include \"a.h\"\n#include \".\"", {}, {folder.path()});
    REQUIRE(found.has_value());
    CHECK(found->empty());
}

TEST_SUITE_END();
