#include "device/constant_groups.hpp"

#include "device/shared_constants.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace coaccel::detail {
namespace {

constexpr std::size_t packed = std::numeric_limits<std::size_t>::max();

constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept
{
    return (bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
}

bool is_small(const plan_content& c) noexcept
{
    return c.bytes < shared_constants::least_bytes;
}

} // namespace

std::uint64_t constant_group::content_bytes() const noexcept
{
    std::uint64_t sum = 0;
    for (const part& p : parts)
        sum += p.content.bytes;
    return sum;
}

bool operator==(const constant_group& a, const constant_group& b) noexcept
{
    return std::ranges::equal(
        a.parts, b.parts, {}, [](const auto& p) { return p.content.identity.get(); },
        [](const auto& p) { return p.content.identity.get(); });
}

constant_groups group_constants(std::span<const plan_content> contents, packing how)
{
    constant_groups made;
    constant_group small;
    boost::unordered_flat_map<const void*, constant_groups::place> known;
    made.places.reserve(contents.size());
    std::uint64_t small_bytes = 0;
    if (how == packing::small_ones)
        for (const plan_content& c : contents)
            if (is_small(c) && known.try_emplace(c.identity.get()).second)
                small_bytes += c.bytes;
    known.clear();
    const bool pack = small_bytes >= shared_constants::least_bytes;
    for (const plan_content& c : contents) {
        const auto [found, is_new] = known.try_emplace(c.identity.get());
        if (is_new && pack && is_small(c)) {
            found->second = {packed, small.bytes};
            small.parts.push_back({c, small.bytes});
            small.bytes += aligned(c.bytes);
        } else if (is_new) {
            found->second = {made.all.size(), 0};
            made.all.push_back({.parts = {{c, 0}}, .bytes = c.bytes});
        }
        made.places.push_back(found->second);
    }
    for (auto& p : made.places)
        if (p.group == packed)
            p.group = made.all.size();
    if (pack)
        made.all.push_back(std::move(small));
    return made;
}

} // namespace coaccel::detail
