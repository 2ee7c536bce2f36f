#include "cuda/plan/copy_parts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

namespace test_cuda_copy_parts {

namespace {

using coaccel::cuda::argument_range;
using coaccel::cuda::copy_direction;
using coaccel::cuda::copy_part;
using coaccel::cuda::direct_argument;
using coaccel::cuda::make_copy_parts;

constexpr argument_range range{
    .way = copy_direction::to_device, .instance = 0x10000, .where = {0x200, 0x800}, .staged = 0x50000};

/// The arguments in the range: eight of 256 bytes.
constexpr unsigned arguments = 8;

direct_argument direct(unsigned argument)
{
    return {.where = {0x200 + argument * 0x100u, 0x100}, .host = 0x90000 + argument * 0x1000u};
}

TEST_SUITE_BEGIN("copy parts");

TEST_CASE("every byte of the range is copied once, from where its argument is")
{
    for (unsigned set = 0; set < (1u << arguments); ++set) {
        if (static_cast<std::size_t>(std::popcount(set)) > coaccel::cuda::most_direct_arguments)
            continue;
        CAPTURE(set);
        // In reverse, because the caller need not sort them.
        std::vector<direct_argument> all;
        for (unsigned a = arguments; a-- > 0;)
            if (set & (1u << a))
                all.push_back(direct(a));
        const auto parts = make_copy_parts(range, all);
        std::map<CUdeviceptr, CUdeviceptr> from;
        std::uint64_t most = 0;
        for (const copy_part& p : parts.used()) {
            CHECK(p.bytes > 0);
            most = std::max(most, p.bytes);
            for (std::uint64_t i = 0; i < p.bytes; i += 0x100)
                CHECK(from.emplace(p.to + i, p.from + i).second);
        }
        CHECK(parts.most_bytes() == most);
        REQUIRE(from.size() == arguments);
        for (unsigned a = 0; a < arguments; ++a) {
            const CUdeviceptr staged = range.staged + a * 0x100u;
            CHECK(from.at(range.instance + range.where.offset + a * 0x100u) ==
                  (set & (1u << a) ? direct(a).host : staged));
        }
    }
}

TEST_CASE("what follows a direct argument of odd size begins where its slot does")
{
    auto odd = range;
    odd.where.bytes = 0x100 + 0x100 + 5;
    std::vector one{direct_argument{.where = {0x200, 0xf1}, .host = 0x90000}};
    const auto parts = make_copy_parts(odd, one);
    REQUIRE(parts.count == 2);
    CHECK(parts.all[0] == copy_part{0x10200, 0x90000, 0xf1});
    CHECK(parts.all[1] == copy_part{0x10300, 0x50100, 0x105});
    // Nothing is left behind the last one, although its slot ends in the middle of a unit.
    odd.where.bytes = 0xf1;
    CHECK(make_copy_parts(odd, one).count == 1);
}

TEST_CASE("outputs are copied the other way")
{
    auto back = range;
    back.way = copy_direction::to_host;
    std::vector one{direct(0)};
    const auto parts = make_copy_parts(back, one);
    REQUIRE(parts.count == 2);
    CHECK(parts.all[0] == copy_part{direct(0).host, 0x10200, 0x100});
    CHECK(parts.all[1] == copy_part{0x50100, 0x10300, 0x700});
}

TEST_CASE("a range without arguments has no parts")
{
    auto empty = range;
    empty.where.bytes = 0;
    CHECK(make_copy_parts(empty, {}).count == 0);
    CHECK(make_copy_parts(empty, {}).most_bytes() == 0);
}

TEST_SUITE_END();

} // namespace

} // namespace test_cuda_copy_parts
