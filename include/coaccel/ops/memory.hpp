#ifndef COACCEL_OPS_MEMORY_HPP
#define COACCEL_OPS_MEMORY_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/op.hpp>

#include <boost/describe/enum.hpp>

namespace coaccel::memory {

/// Sets every element of dst to value.
template <element T>
struct fill {
    using value_type = T;

    out<T> dst; ///< The elements to fill.
    T value{};  ///< The value of each element.

    error_code check() const noexcept { return dst.size() != 0 ? error_code{} : detail::is_empty(name, "dst"); }

    COACCEL_PURE_OP(memory, fill, void, dst, value)
};

/// Copies src to dst within the device; both have the same length and must not overlap.
template <element T>
struct copy {
    using value_type = T;

    in<T> src;  ///< The elements to copy.
    out<T> dst; ///< The destination; same length as src.

    error_code check() const noexcept
    {
        if (src.size() == 0)
            return detail::is_empty(name, "src");
        if (src.size() == dst.size())
            return {};
        return detail::op_error(errc::length_mismatch, name, {"dst has ", dst.size(), " elements, src ", src.size()});
    }

    COACCEL_PURE_OP(memory, copy, void, src, dst)
};

/// The location of managed memory.
enum class place : std::uint8_t { device, /**< The device's memory. */ host /**< The host's memory. */ };
BOOST_DESCRIBE_ENUM(place, device, host)

/// Moves managed memory to where it will be used next. Does nothing on the host backend.
template <element T>
struct prefetch {
    using value_type = T;
    static constexpr capture_obstacle obstacle = capture_obstacle::host_work;

    inout<T> target;          ///< Managed memory.
    place to = place::device; ///< The place of its next use.

    error_code check() const noexcept
    {
        if (target.size() == 0)
            return detail::is_empty(name, "target");
        if (to <= place::host)
            return {};
        return detail::not_enumerated(name, "to", static_cast<unsigned>(to), "memory::place");
    }

    COACCEL_PURE_OP(memory, prefetch, void, target, to)
};

/// The expected use of managed memory.
enum class advice : std::uint8_t {
    /// Rarely written: host and device may each have a copy.
    read_mostly,
    /// Reverts read_mostly.
    unset_read_mostly,
    /// Preferably located on the device.
    prefer_device,
    /// Preferably located on the host.
    prefer_host,
    /// No preferred location.
    unset_preferred,
    /// Stays mapped for the device, wherever the memory is.
    accessed_by_device,
    /// Stays mapped for the host, wherever the memory is.
    accessed_by_host,
};
BOOST_DESCRIBE_ENUM(advice, read_mostly, unset_read_mostly, prefer_device, prefer_host, unset_preferred,
                    accessed_by_device, accessed_by_host)

/// Tells the driver how managed memory will be used. Does nothing on the host backend.
template <element T>
struct advise {
    using value_type = T;
    static constexpr capture_obstacle obstacle = capture_obstacle::host_work;

    inout<T> target;                   ///< Managed memory.
    advice what = advice::read_mostly; ///< Its expected use.

    error_code check() const noexcept
    {
        if (target.size() == 0)
            return detail::is_empty(name, "target");
        if (what <= advice::accessed_by_host)
            return {};
        return detail::not_enumerated(name, "what", static_cast<unsigned>(what), "memory::advice");
    }

    COACCEL_PURE_OP(memory, advise, void, target, what)
};

/// Returns the unused memory in the pools of the device to the system.
struct trim {
    static constexpr capture_obstacle obstacle = capture_obstacle::host_work;

    error_code check() const noexcept { return {}; }

    COACCEL_OP(memory, trim, void)
};

/// The ops of this header for one element type.
template <element T>
using ops_for = type_list<fill<T>, copy<T>, prefetch<T>, advise<T>>;

} // namespace coaccel::memory

#endif
