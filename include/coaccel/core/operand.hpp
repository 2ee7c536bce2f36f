#ifndef COACCEL_CORE_OPERAND_HPP
#define COACCEL_CORE_OPERAND_HPP

#include <coaccel/core/buffer.hpp>
#include <coaccel/core/durable_buffer.hpp>
#include <coaccel/core/managed_buffer.hpp>

namespace coaccel {

/// How an op uses a buffer.
enum class access : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Whether the op writes to the buffer.
constexpr bool writes(access a) noexcept
{
    return a != access::read;
}

namespace detail {

template <element T, access Access>
struct operand {
    using value_type = T;
    static constexpr access mode = Access;

    any_ref raw{.type = dtype_v<T>};

    constexpr operand() noexcept = default;
    constexpr operand(const ref<T>& r) noexcept : raw(r.raw()) {}
    operand(const buffer<T>& b) noexcept : raw(b.ref().raw()) {}
    operand(const managed_buffer<T>& b) noexcept : raw(b.ref().raw()) {}
    operand(const durable_buffer<T>& b) noexcept : raw(b.ref().raw()) {}

    constexpr std::uint64_t size() const noexcept { return raw.size; }
};

template <class F>
inline constexpr bool is_operand = false;

} // namespace detail

/// A buffer an op reads.
template <element T>
struct in : detail::operand<T, access::read> {
    using detail::operand<T, access::read>::operand;
};

/// A buffer an op overwrites.
template <element T>
struct out : detail::operand<T, access::write> {
    using detail::operand<T, access::write>::operand;
};

/// A buffer an op reads and overwrites.
template <element T>
struct inout : detail::operand<T, access::read_write> {
    using detail::operand<T, access::read_write>::operand;
};

template <class T>
in(const buffer<T>&) -> in<T>;
template <class T>
in(const managed_buffer<T>&) -> in<T>;
template <class T>
in(const durable_buffer<T>&) -> in<T>;
template <class T>
in(ref<T>) -> in<T>;
template <class T>
out(const buffer<T>&) -> out<T>;
template <class T>
out(const managed_buffer<T>&) -> out<T>;
template <class T>
out(const durable_buffer<T>&) -> out<T>;
template <class T>
out(ref<T>) -> out<T>;
template <class T>
inout(const buffer<T>&) -> inout<T>;
template <class T>
inout(const managed_buffer<T>&) -> inout<T>;
template <class T>
inout(const durable_buffer<T>&) -> inout<T>;
template <class T>
inout(ref<T>) -> inout<T>;

namespace detail {

template <class T>
inline constexpr bool is_operand<in<T>> = true;
template <class T>
inline constexpr bool is_operand<out<T>> = true;
template <class T>
inline constexpr bool is_operand<inout<T>> = true;

} // namespace detail
} // namespace coaccel

#endif
