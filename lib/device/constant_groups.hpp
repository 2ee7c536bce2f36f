#ifndef COACCEL_DEVICE_CONSTANT_GROUPS_HPP
#define COACCEL_DEVICE_CONSTANT_GROUPS_HPP

#include <coaccel/plan/detail/plan_data.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace coaccel::detail {

/// Constants of a plan that are in one buffer: a single one, or small ones together.
struct constant_group {
    struct part {
        plan_content content;
        std::uint64_t offset = 0;
    };

    std::vector<part> parts;
    /// Of the buffer.
    std::uint64_t bytes = 0;

    /// Of the constants, without the gaps between them.
    std::uint64_t content_bytes() const noexcept;

    /// Compares no bytes, which was done when the plans were finished: it may take long.
    friend bool operator==(const constant_group& a, const constant_group& b) noexcept;
};

/// The constants of a plan, each content once.
struct constant_groups {
    struct place {
        std::size_t group = 0;
        std::uint64_t offset = 0;
    };

    std::vector<constant_group> all;
    /// Of each constant.
    std::vector<place> places;
};

enum class packing : std::uint8_t {
    /// Each constant has its own buffer, which it shares with equal constants of other plans.
    none,
    /// Constants that are too small to be shared by contexts have one buffer, if they are large enough together.
    small_ones,
};

/// Depends on nothing else, so that the groups of a plan are the same in each context.
COACCEL_DECL constant_groups group_constants(std::span<const plan_content> contents, packing how);

} // namespace coaccel::detail

#endif
