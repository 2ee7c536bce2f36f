#include "worker/child/received_kernels.hpp"

#include "jit/registry.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_worker_received_kernels {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

struct part {
    std::uint64_t id = 1;
    std::string code = "code";
    std::uint64_t total = code.size();
    std::uint64_t offset = 0;
    std::string name = "k";
    std::string symbol = "s";
};

bool add(received_kernels& to, const part& p)
{
    image_frame f;
    f.id = p.id;
    f.name = p.name;
    f.symbol = p.symbol;
    f.total = p.total;
    f.offset = p.offset;
    f.part = std::as_bytes(std::span(p.code));
    return to.add(f);
}

// The name and symbol of a part count too.
constexpr std::uint64_t texts = 2;

} // namespace

TEST_SUITE_BEGIN("received_kernels");

TEST_CASE("an image is available when its last part has arrived")
{
    received_kernels s;
    CHECK(add(s, {.code = "ab", .total = 5}));
    CHECK(add(s, {.id = 2, .code = "other"}));
    CHECK(add(s, {.code = "cd", .total = 5, .offset = 2}));
    CHECK_FALSE(s.find(1));
    CHECK(add(s, {.code = "e", .total = 5, .offset = 4}));
    REQUIRE(s.find(1));
    CHECK(s.find(1)->code == "abcde");
    CHECK(s.find(1)->name == "k");
    CHECK(s.find(1)->symbol == "s");
    REQUIRE(s.find(2));
    CHECK(s.find(2)->code == "other");
    CHECK_FALSE(s.find(3));
    CHECK(jit::find_image(s.find(1)->id) == s.find(1));
}

TEST_CASE("a part that does not match the parts before it is refused, and changes nothing")
{
    received_kernels s;
    CHECK_FALSE(add(s, {.code = "cd", .total = 5, .offset = 2}));
    CHECK_FALSE(add(s, {.code = "abcdef", .total = 5}));
    CHECK(add(s, {.code = "ab", .total = 5}));
    for (const part& wrong : {part{.code = "ab", .total = 5}, part{.code = "cde", .total = 5, .offset = 3},
                              part{.code = "cde", .total = 6, .offset = 2}, part{.code = "cd", .total = 4, .offset = 2},
                              part{.code = "cdef", .total = 5, .offset = 2},
                              part{.code = "cde", .total = 5, .offset = 2, .name = "another"},
                              part{.code = "cde", .total = 5, .offset = 2, .symbol = "another"}}) {
        CAPTURE(wrong.code);
        CHECK_FALSE(add(s, wrong));
    }
    CHECK_FALSE(s.find(1));
    CHECK(add(s, {.code = "cde", .total = 5, .offset = 2}));
    REQUIRE(s.find(1));
    CHECK(s.find(1)->code == "abcde");
    CHECK_FALSE(add(s, {.code = "", .total = 5, .offset = 5}));
    CHECK_FALSE(add(s, {.code = "abcde"}));
}

TEST_CASE("the number of images is limited")
{
    received_kernels s({.images = 2});
    CHECK(add(s, {.id = 1}));
    // An incomplete image occupies its entry.
    CHECK(add(s, {.id = 2, .code = "ab", .total = 4}));
    CHECK_FALSE(add(s, {.id = 3}));
    CHECK(add(s, {.id = 2, .code = "cd", .total = 4, .offset = 2}));
    CHECK(s.find(1));
    CHECK(s.find(2));
    CHECK_FALSE(s.find(3));
}

TEST_CASE("the size of an image is limited")
{
    received_kernels s({.bytes_each = 5});
    CHECK(add(s, {.id = 1, .code = "abcde"}));
    CHECK_FALSE(add(s, {.id = 2, .code = "abcdef"}));
    // The announced total counts.
    CHECK_FALSE(add(s, {.id = 3, .code = "a", .total = 6}));
    CHECK_FALSE(add(s, {.id = 4, .code = "a", .total = ~std::uint64_t(0)}));
}

TEST_CASE("the total size of all images is limited")
{
    received_kernels s({.bytes = 10 + 2 * texts});
    CHECK(add(s, {.id = 1, .code = "a", .total = 6}));
    CHECK_FALSE(add(s, {.id = 2, .code = "abcde"}));
    CHECK_FALSE(add(s, {.id = 3, .code = "abcd", .name = "longer"}));
    CHECK_FALSE(add(s, {.id = 4, .code = "abcd", .symbol = "longer"}));
    CHECK(add(s, {.id = 5, .code = "abcd"}));
    CHECK_FALSE(add(s, {.id = 6, .code = "", .total = 1}));
    CHECK(add(s, {.id = 1, .code = "bcdef", .total = 6, .offset = 1}));
    CHECK(s.find(1));
    CHECK(s.find(5));
}

TEST_CASE("a removed image makes room, and stays alive while it is in use")
{
    received_kernels s({.images = 1, .bytes = 4 + texts});
    CHECK_FALSE(s.remove(1));
    CHECK(add(s, {.id = 1, .code = "abcd"}));
    CHECK_FALSE(add(s, {.id = 2, .code = "abcd"}));
    const auto used = s.find(1);
    CHECK(s.remove(1));
    CHECK_FALSE(s.remove(1));
    CHECK_FALSE(s.find(1));
    CHECK(jit::find_image(used->id) == used);
    CHECK(add(s, {.id = 2, .code = "a", .total = 4}));
    CHECK(s.remove(2));
    CHECK(add(s, {.id = 3, .code = "abcd"}));
}

TEST_CASE("10,000 kernels and one of 32 MiB are within the default limits")
{
    received_kernels s;
    for (std::uint64_t id = 1; id <= 10'000; ++id)
        REQUIRE(add(s, {.id = id, .code = std::string(1000, 'x')}));
    REQUIRE(add(s, {.id = 20'000, .code = std::string(std::size_t(32) << 20, 'x')}));
    CHECK(s.find(20'000));
}

TEST_SUITE_END();

} // namespace test_worker_received_kernels
