#ifndef COACCEL_OPS_MEMORY_HPP
#define COACCEL_OPS_MEMORY_HPP

#include <coaccel/core/op.hpp>

namespace coaccel::memory {

/// Sets every element of dst to value.
template <element T>
struct fill {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.fill";
    static constexpr library lib = library::memory;

    out<T> dst;
    T value{};

    error_code check() const noexcept
    {
        return dst.size() != 0 ? error_code{} : make_error_code(errc::invalid_argument);
    }

    BOOST_DESCRIBE_CLASS(fill, (), (dst, value), (), ())
};

/// Copies src to dst within the device; both have the same length and do not overlap.
template <element T>
struct copy {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.copy";
    static constexpr library lib = library::memory;

    in<T> src;
    out<T> dst;

    error_code check() const noexcept
    {
        if (src.size() == 0)
            return errc::invalid_argument;
        return src.size() == dst.size() ? error_code{} : make_error_code(errc::length_mismatch);
    }

    BOOST_DESCRIBE_CLASS(copy, (), (src, dst), (), ())
};

} // namespace coaccel::memory

#endif
