#ifndef COACCEL_OPS_MEMORY_HPP
#define COACCEL_OPS_MEMORY_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/detail/op_error.hpp>

namespace coaccel::memory {

/// Sets every element of dst to value.
template <element T>
struct fill {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.fill";
    static constexpr library lib = library::memory;

    out<T> dst; ///< What is filled.
    T value{};  ///< With what.

    error_code check() const noexcept { return dst.size() != 0 ? error_code{} : detail::is_empty(name, "dst"); }

    BOOST_DESCRIBE_CLASS(fill, (), (dst, value), (), ())
};

/// Copies src to dst within the device; both have the same length and do not overlap.
template <element T>
struct copy {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.copy";
    static constexpr library lib = library::memory;

    in<T> src;  ///< What is copied.
    out<T> dst; ///< Where to; as long as src.

    error_code check() const noexcept
    {
        if (src.size() == 0)
            return detail::is_empty(name, "src");
        if (src.size() == dst.size())
            return {};
        return detail::op_error(errc::length_mismatch, name, {"dst has ", dst.size(), " elements, src ", src.size()});
    }

    BOOST_DESCRIBE_CLASS(copy, (), (src, dst), (), ())
};

/// Where managed memory can be.
enum class place : std::uint8_t { device, host };

/// Moves managed memory to where it will be used next. On the host backend there is nothing to move.
template <element T>
struct prefetch {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.prefetch";
    static constexpr library lib = library::memory;

    inout<T> target;          ///< Managed memory.
    place to = place::device; ///< Where it is used next.

    error_code check() const noexcept
    {
        if (target.size() == 0)
            return detail::is_empty(name, "target");
        if (to <= place::host)
            return {};
        return detail::not_enumerated(name, "to", static_cast<unsigned>(to), "memory::place");
    }

    BOOST_DESCRIBE_CLASS(prefetch, (), (target, to), (), ())
};

/// What managed memory is used for.
enum class advice : std::uint8_t {
    /// Rarely written: each side may have a copy of its own.
    read_mostly,
    unset_read_mostly,
    /// Where it should be when there is a choice.
    prefer_device,
    prefer_host,
    unset_preferred,
    /// Kept mapped for that side, wherever it is.
    accessed_by_device,
    accessed_by_host,
};

/// Tells the driver what managed memory is used for. On the host backend there is nobody to tell.
template <element T>
struct advise {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.advise";
    static constexpr library lib = library::memory;

    inout<T> target;                   ///< Managed memory.
    advice what = advice::read_mostly; ///< What it is used for.

    error_code check() const noexcept
    {
        if (target.size() == 0)
            return detail::is_empty(name, "target");
        if (what <= advice::accessed_by_host)
            return {};
        return detail::not_enumerated(name, "what", static_cast<unsigned>(what), "memory::advice");
    }

    BOOST_DESCRIBE_CLASS(advise, (), (target, what), (), ())
};

/// Gives the memory that the device's pools keep unused back to the system.
struct trim {
    using reply = void;
    static constexpr std::string_view name = "memory.trim";
    static constexpr library lib = library::memory;

    error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(trim, (), (), (), ())
};

} // namespace coaccel::memory

#endif
