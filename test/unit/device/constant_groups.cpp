#include "device/constant_groups.hpp"

#include "device/shared_constants.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace test_device_constant_groups {

namespace {

using namespace coaccel::detail;

constexpr std::uint64_t least = shared_constants::least_bytes;

/// A constant with so many bytes; equal numbers are equal constants.
plan_content constant(int number, std::uint64_t bytes)
{
    static std::map<int, std::shared_ptr<const void>> identities;
    auto& identity = identities[number];
    if (!identity)
        identity = std::make_shared<int>(number);
    return {.data = nullptr, .bytes = bytes, .id = {}, .identity = identity};
}

/// Checks what holds for all groups.
void check(const std::vector<plan_content>& contents, const constant_groups& made)
{
    REQUIRE(made.places.size() == contents.size());
    for (std::size_t i = 0; i < contents.size(); ++i) {
        const auto& group = made.all.at(made.places[i].group);
        const auto part = std::ranges::find(group.parts, made.places[i].offset, &constant_group::part::offset);
        REQUIRE(part != group.parts.end());
        CHECK(part->content.identity == contents[i].identity);
    }
    for (const auto& group : made.all) {
        std::uint64_t end = 0;
        for (const auto& part : group.parts) {
            CHECK(part.offset >= end);
            CHECK(part.offset % slot_alignment == 0);
            end = part.offset + part.content.bytes;
        }
        CHECK(group.bytes >= end);
    }
}

} // namespace

TEST_SUITE_BEGIN("constant_groups");

TEST_CASE("equal constants of a plan are in one buffer, others in their own")
{
    const std::vector all{constant(1, least), constant(2, 10), constant(1, least), constant(3, 20), constant(2, 10)};
    for (const auto how : {packing::none, packing::small_ones}) {
        const auto made = group_constants(all, how);
        check(all, made);
        CHECK(made.all.size() == 3);
        CHECK(made.all[0].bytes == least);
        CHECK(made.all[1].bytes == 10);
        CHECK(made.places[2].group == 0);
        CHECK(made.places[4].group == 1);
    }
    CHECK(group_constants({}, packing::small_ones).all.empty());
}

TEST_CASE("small constants are packed if they are large enough together, counted once each")
{
    const std::vector enough{constant(1, least - 1), constant(2, least), constant(3, 1), constant(1, least - 1)};
    const auto made = group_constants(enough, packing::small_ones);
    check(enough, made);
    REQUIRE(made.all.size() == 2);
    CHECK(made.all[0].bytes == least);
    CHECK(made.all[1].parts.size() == 2);
    CHECK(made.all[1].bytes == least + slot_alignment);
    CHECK(made.all[1].content_bytes() == least);
    CHECK(group_constants(enough, packing::none).all.size() == 3);

    const std::vector twice{constant(1, least / 2), constant(1, least / 2)};
    CHECK(group_constants(twice, packing::small_ones).all.size() == 1);
    CHECK(group_constants(twice, packing::small_ones).all[0].bytes == least / 2);

    // Their padding does not count.
    const std::vector almost{constant(1, least - 2), constant(3, 1)};
    CHECK(group_constants(almost, packing::small_ones).all.size() == 2);
    CHECK(group_constants(std::vector{constant(1, least - 1)}, packing::small_ones).all[0].bytes == least - 1);

    std::vector<plan_content> many;
    for (int i = 0; i < 300; ++i)
        many.push_back(constant(100 + i, 10'000 + static_cast<std::uint64_t>(i)));
    check(many, group_constants(many, packing::small_ones));
    CHECK(group_constants(many, packing::small_ones).all.size() == 1);
}

TEST_CASE("groups are equal if they have the same constants in the same order")
{
    const auto group = [](const std::vector<plan_content>& of) {
        return group_constants(of, packing::small_ones).all.at(0);
    };
    const auto a = constant(1, least / 2), b = constant(2, least / 2), c = constant(3, least / 2);
    CHECK(group({a, b}) == group({a, b, a}));
    CHECK_FALSE(group({a, b}) == group({b, a}));
    CHECK_FALSE(group({a, b}) == group({a, c}));
    CHECK_FALSE(group({a, b}) == group({a, b, c}));
    CHECK_FALSE(group({a, b}) == group({a}));
}

TEST_SUITE_END();

} // namespace test_device_constant_groups
