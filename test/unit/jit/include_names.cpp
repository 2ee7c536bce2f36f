#include "cuda/jit/include_names.hpp"

#include <doctest/doctest.h>

namespace test_jit_include_names {

namespace {

using namespace coaccel;
using names = std::vector<std::string>;

struct row {
    const char* text;
    names found;
};

void check(const row& r)
{
    CAPTURE(r.text);
    const auto found = cuda::included_names(r.text);
    REQUIRE(found.has_value());
    CHECK(*found == r.found);
}

} // namespace

TEST_SUITE_BEGIN("cuda::included_names");

TEST_CASE("the names after #include are found in every spelling")
{
    const row rows[] = {
        {"", {}},
        {"#include \"a.h\"", {"a.h"}},
        {"#include <a/b.h>\n#include \"c.h\"\n", {"a/b.h", "c.h"}},
        {"#include <a//b.h>", {"a//b.h"}},
        {"  #\tinclude\t<a>", {"a"}},
        {"\f\v#include <a>\r\n", {"a"}},
        {"#include<a>", {"a"}},
        {"# /* x */ include /* y */ \"a\"", {"a"}},
        {"%:include <a>", {"a"}},
        {"#include_next <a>", {"a"}},
        {"#if __has_include(<a.h>) || __has_include ( \"b.h\" )", {"a.h", "b.h"}},
        {"#define X(a) #a\n#includes\n#include", {}},
        {"#include \"broken\n#include <fine>", {"fine"}},
        {"#include // nothing", {}},
    };
    for (const auto& r : rows)
        check(r);
}

TEST_CASE("spliced lines count as one line")
{
    const row rows[] = {
        {"#\\\n include \\\n <a>", {"a"}}, {"#inc\\\nlude \"h.h\"", {"h.h"}},   {"#include \"a\\\r\nb.h\"", {"ab.h"}},
        {"x \\\n#include <a>", {}},        {"// comment \\\n#include <a>", {}}, {"\\", {}},
    };
    for (const auto& r : rows)
        check(r);
}

TEST_CASE("includes in comments and literals are ignored")
{
    const row rows[] = {
        {"// #include <in_comment>", {}},
        {"// #include order matters\n#include <a>", {"a"}},
        {"/* #include MACRO */ #include <a>", {"a"}},
        {"/*\n#include MACRO\n// */ #include <a>", {"a"}},
        {"x # include MACRO", {}},
        {"/* unclosed #", {}},
        {"#include /* unclosed", {}},
        {"s = \"__has_include(x)\";", {}},
        {"s = R\"x(\n#include MACRO\n)\" )x\";\n#include <a>", {"a"}},
    };
    for (const auto& r : rows)
        check(r);
}

TEST_CASE("an include after a literal is found")
{
    const names a = {"a"};
    const char* const rows[] = {
        "f(\"/*\");\n#include <a>",
        "s = \"\\\"/*\"; // \"\n#include <a>",
        "s = \"\\\\\"; // \"\n#include <a>",
        "c = '\"'; /* x */\n#include <a>",
        "c = '\\''; d = \"/*\";\n#include <a>",
        "n = 1'000 + f(\"it's /*\");\n#include <a>",
        "s = u8R\"(/*)\";\n#include <a>",
        "s = FOOR\"(\";\n#include <a>\n// )\"",
        "s = R\"(\";\n#include <a>",
        "s = R\"not a delimiter(\";\n#include <a>\n// )not a delimiter\"",
        "#if 0\ndon't /*\n#endif\n#include <a>",
        "#error \" /*\n#include <a>",
    };
    for (const char* text : rows)
        check({text, a});
}

TEST_CASE("a test for the existence of __has_include names no file")
{
    const row rows[] = {
        {"#ifdef __has_include\n#endif", {}},
        {"#if defined(__has_include) && defined __has_include\n#endif", {}},
        {"#ifndef __has_include\n#define __has_include(x) 0\n#endif", {}},
        {"#if defined(__has_include) && __has_include(<a>)", {"a"}},
        {"my__has_include(x)", {}},
    };
    for (const auto& r : rows)
        check(r);
}

TEST_CASE("a name that a macro may produce makes the result unknown")
{
    const char* const rows[] = {
        "#include MACRO",
        "# include /**/ MACRO(x)",
        "#inc\\\nlude MACRO",
        "#include <a END",
        "#if __has_include(MACRO)",
        "#if defined(__has_include) && __has_include(MACRO)",
        "#define HAS(x) __has_include(x)",
        "#define HAS __has_include\n",
        "?\?=include <a>",
        "#inc?\?/\nlude <a>",
    };
    for (const char* text : rows) {
        CAPTURE(text);
        CHECK_FALSE(cuda::included_names(text).has_value());
    }
}

TEST_SUITE_END();

} // namespace test_jit_include_names
