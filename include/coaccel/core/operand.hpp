#ifndef COACCEL_CORE_OPERAND_HPP
#define COACCEL_CORE_OPERAND_HPP

#include <coaccel/core/buffer.hpp>
#include <coaccel/core/durable_buffer.hpp>
#include <coaccel/core/managed_buffer.hpp>

#include <array>
#include <cstddef>

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

/// An operand that need not have a buffer. A default-constructed one has none; an empty buffer or ref is an error, as
/// for every operand.
template <element T, access Access>
struct optional_operand : operand<T, Access> {
    static constexpr bool optional = true;
    using operand<T, Access>::operand;

    constexpr optional_operand() noexcept { this->raw.slot = any_ref::no_slot; }

    constexpr bool has_value() const noexcept { return !this->raw.is_none(); }
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

/// A buffer an op reads, if it has one.
template <element T>
struct optional_in : detail::optional_operand<T, access::read> {
    using detail::optional_operand<T, access::read>::optional_operand;
};

/// A buffer an op overwrites, if it has one.
template <element T>
struct optional_out : detail::optional_operand<T, access::write> {
    using detail::optional_operand<T, access::write>::optional_operand;
};

/// A buffer an op reads and overwrites, if it has one.
template <element T>
struct optional_inout : detail::optional_operand<T, access::read_write> {
    using detail::optional_operand<T, access::read_write>::optional_operand;
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
template <class T>
inline constexpr bool is_operand<optional_in<T>> = true;
template <class T>
inline constexpr bool is_operand<optional_out<T>> = true;
template <class T>
inline constexpr bool is_operand<optional_inout<T>> = true;

/// How many operands a field of this type is: a list of them is an array.
template <class F>
inline constexpr std::size_t operands_in = is_operand<F>;
template <class F, std::size_t N>
inline constexpr std::size_t operands_in<std::array<F, N>> = is_operand<F> ? N : 0;

/// Whether a field of this type is an array of operands, with any number of dimensions.
template <class F>
inline constexpr bool has_operands = is_operand<F>;
template <class F, std::size_t N>
inline constexpr bool has_operands<F[N]> = has_operands<F>;
template <class F, std::size_t N>
inline constexpr bool has_operands<std::array<F, N>> = has_operands<F>;

/// Whether an operand of this type need not have a buffer.
template <class F>
inline constexpr bool is_optional = requires { F::optional; };

} // namespace detail
} // namespace coaccel

#endif
