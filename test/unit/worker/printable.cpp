#include "worker/printable.hpp"

#include <doctest/doctest.h>

using coaccel::worker::printable;
using coaccel::worker::whole_characters;
using namespace std::string_literals;

TEST_SUITE_BEGIN("printable");

TEST_CASE("plain text stays as it is")
{
    for (const auto& text :
         {""s, "a line of text, with \\ and \"quotes\" ~"s, "a\tb"s, "\u00a0k\u00f6ln \u20ac \U0001f600"s})
        CHECK(printable(text) == text);
}

TEST_CASE("controls and line ends are written out")
{
    CHECK(printable("a\nb\r\n") == "a\\x0ab\\x0d\\x0a");
    CHECK(printable("\x1b[2J\x07\x7f"s) == "\\x1b[2J\\x07\\x7f");
    CHECK(printable("a\0b"s) == "a\\x00b");
    // As one character of UTF-8 these begin sequences for a terminal, end lines, and turn the text round.
    CHECK(printable("\u009b") == "\\xc2\\x9b");
    CHECK(printable("\u2028\u2029") == "\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
    CHECK(printable("\u202e\ufeff") == "\\xe2\\x80\\xae\\xef\\xbb\\xbf");
}

TEST_CASE("what is no UTF-8 is written out byte by byte, and what follows is not lost")
{
    CHECK(printable("\x80z") == "\\x80z");
    CHECK(printable("\xff\xfe") == "\\xff\\xfe");
    CHECK(printable("\xc3") == "\\xc3");
    CHECK(printable("\xc3z") == "\\xc3z");
    CHECK(printable("\xe2\x82\xc3\xb6") == "\\xe2\\x82\xc3\xb6");
    // In more bytes than it takes, half of a pair, beyond the last.
    CHECK(printable("\xc0\x8a") == "\\xc0\\x8a");
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
    CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("whatever the bytes, the line is printable and does not change again")
{
    std::string all;
    for (int a = 0; a < 256; ++a)
        for (const int b : {0x0a, 0x41, 0x80, 0x9b, 0xbf, 0xc2, 0xe2, 0xf0})
            for (const int c : {a, b})
                all += static_cast<char>(c);
    const auto line = printable(all);
    CHECK(line.find_first_of("\n\r\x1b\x7f") == std::string::npos);
    CHECK(printable(line) == line);
}

TEST_CASE("a character that is cut off at the end is found")
{
    CHECK(whole_characters("") == 0);
    CHECK(whole_characters("abc") == 3);
    CHECK(whole_characters("k\xc3\xb6") == 3);
    CHECK(whole_characters("k\xc3") == 1);
    CHECK(whole_characters("k\xe2\x82") == 1);
    CHECK(whole_characters("k\xf0\x9f\x98") == 1);
    CHECK(whole_characters("k\xf0\x9f\x98\x80") == 5);
    // Nothing that could still become a character.
    CHECK(whole_characters("k\x80\x80\x80\x80") == 5);
    CHECK(whole_characters("k\xff") == 2);
    CHECK(whole_characters("\x80") == 1);
}

TEST_SUITE_END();
