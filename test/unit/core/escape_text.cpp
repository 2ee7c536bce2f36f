#include "core/escape_text.hpp"

#include <doctest/doctest.h>

namespace test_core_escape_text {

using coaccel::detail::escape_text;
using coaccel::detail::whole_characters;
using namespace std::string_literals;

TEST_SUITE_BEGIN("escape_text");

TEST_CASE("plain text stays unchanged")
{
    for (const auto& text :
         {""s, "a line of text, with \\ and \"quotes\" ~"s, "a\tb"s, "\u00a0k\u00f6ln \u20ac \U0001f600"s})
        CHECK(escape_text(text) == text);
}

TEST_CASE("control characters and line ends are escaped")
{
    CHECK(escape_text("a\nb\r\n") == "a\\x0ab\\x0d\\x0a");
    CHECK(escape_text("\x1b[2J\x07\x7f"s) == "\\x1b[2J\\x07\\x7f");
    CHECK(escape_text("a\0b"s) == "a\\x00b");
    // Single UTF-8 characters that begin terminal control sequences, end lines, or reverse the text direction.
    CHECK(escape_text("\u009b") == "\\xc2\\x9b");
    CHECK(escape_text("\u2028\u2029") == "\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
    CHECK(escape_text("\u202e\ufeff") == "\\xe2\\x80\\xae\\xef\\xbb\\xbf");
}

TEST_CASE("invalid UTF-8 is escaped byte by byte, and the text after it is kept")
{
    CHECK(escape_text("\x80z") == "\\x80z");
    CHECK(escape_text("\xff\xfe") == "\\xff\\xfe");
    CHECK(escape_text("\xc3") == "\\xc3");
    CHECK(escape_text("\xc3z") == "\\xc3z");
    CHECK(escape_text("\xe2\x82\xc3\xb6") == "\\xe2\\x82\xc3\xb6");
    // An overlong encoding, a lone surrogate, and a code point beyond U+10FFFF.
    CHECK(escape_text("\xc0\x8a") == "\\xc0\\x8a");
    CHECK(escape_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");
    CHECK(escape_text("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("any bytes become a printable line, and escaping it again changes nothing")
{
    std::string all;
    for (int a = 0; a < 256; ++a)
        for (const int b : {0x0a, 0x41, 0x80, 0x9b, 0xbf, 0xc2, 0xe2, 0xf0})
            for (const int c : {a, b})
                all += static_cast<char>(c);
    const auto line = escape_text(all);
    CHECK(line.find_first_of("\n\r\x1b\x7f") == std::string::npos);
    CHECK(escape_text(line) == line);
}

TEST_CASE("whole_characters leaves out a character truncated at the end")
{
    CHECK(whole_characters("") == 0);
    CHECK(whole_characters("abc") == 3);
    CHECK(whole_characters("k\xc3\xb6") == 3);
    CHECK(whole_characters("k\xc3") == 1);
    CHECK(whole_characters("k\xe2\x82") == 1);
    CHECK(whole_characters("k\xf0\x9f\x98") == 1);
    CHECK(whole_characters("k\xf0\x9f\x98\x80") == 5);
    // Bytes that cannot be the beginning of a character.
    CHECK(whole_characters("k\x80\x80\x80\x80") == 5);
    CHECK(whole_characters("k\xff") == 2);
    CHECK(whole_characters("\x80") == 1);
}

TEST_SUITE_END();

} // namespace test_core_escape_text
