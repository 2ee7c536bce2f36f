#include "plan/content_hash.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace test_plan_content_hash {

namespace {

using namespace coaccel;
using detail::content_hash;
using detail::hash_content;

std::string hash_of(std::string_view text)
{
    return to_string(hash_content(text.data(), text.size()));
}

} // namespace

TEST_SUITE_BEGIN("content_hash");

TEST_CASE("it is MurmurHash3, x64, 128 bits")
{
    CHECK(hash_of("") == "00000000000000000000000000000000");
    CHECK(hash_of("hello") == "cbd8a7b341bd9b025b1e906a48ae1d19");
    CHECK(hash_of("The quick brown fox jumps over the lazy dog") == "e34bbc7bbc071b6c7a433ca9c49a9347");
}

TEST_CASE("the pieces in which bytes are added do not matter")
{
    std::string text;
    for (int i = 0; i < 100; ++i)
        text += static_cast<char>(i * 37);
    const auto whole = hash_content(text.data(), text.size());
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
        content_hash h;
        for (std::size_t at = 0; at < text.size(); at += piece)
            h.add_bytes(text.data() + at, std::min(piece, text.size() - at));
        CHECK(h.finish() == whole);
    }
}

TEST_CASE("every bit and the length matter")
{
    std::set<content_id> seen;
    std::size_t made = 0;
    for (const std::size_t bytes : {1, 7, 8, 15, 16, 17, 31, 32, 33, 64}) {
        std::vector<unsigned char> data(bytes);
        seen.insert(hash_content(data.data(), bytes));
        ++made;
        for (std::size_t bit = 0; bit < 8 * bytes; ++bit) {
            data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
            seen.insert(hash_content(data.data(), bytes));
            data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
            ++made;
        }
    }
    CHECK(seen.size() == made);
}

TEST_CASE("two texts in a row differ from the same characters split elsewhere")
{
    content_hash a;
    a.add(std::string_view("ab"));
    a.add(std::string_view("c"));
    content_hash b;
    b.add(std::string_view("a"));
    b.add(std::string_view("bc"));
    CHECK(a.finish() != b.finish());
}

TEST_SUITE_END();

} // namespace test_plan_content_hash
