#ifndef COACCEL_CORE_REF_HPP
#define COACCEL_CORE_REF_HPP

#include <coaccel/core/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace coaccel {

/// Refers to elements of a device buffer whose type is known only at run time.
///
/// Plain data: it may be copied, stored and sent to another process. It is checked when an op that contains it is
/// enqueued, so an invalid ref causes an error code, never undefined behaviour.
struct any_ref {
    /// The offset of a subspan that exceeds its ref.
    static constexpr std::uint64_t invalid_offset = std::numeric_limits<std::uint64_t>::max();
    /// The slot of an optional operand that has no buffer.
    static constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t device = 0;     ///< Zero: none.
    std::uint32_t generation = 0; ///< The generation of the context; zero: a durable buffer, valid in all of them.
    std::uint32_t slot = 0;       ///< Which buffer of the context.
    std::uint32_t version = 0;    ///< Distinguishes successive uses of the slot.
    std::uint64_t offset = 0;     ///< In elements.
    std::uint64_t size = 0;       ///< In elements.
    dtype type = dtype::u8;       ///< The element type.

    /// Whether it is an optional operand that has no buffer.
    constexpr bool is_none() const noexcept { return device == 0 && slot == no_slot && offset == 0 && size == 0; }

    friend bool operator==(const any_ref&, const any_ref&) = default;
};

/// Refers to contiguous elements of type T in a device buffer; does not own them.
///
/// Exceptions: no function throws.
template <element T>
class ref {
public:
    using value_type = T;

    constexpr ref() noexcept { raw_.type = dtype_v<T>; }

    /// Converts a ref whose type is known only at run time. Ops refuse it with errc::wrong_dtype if the buffer holds
    /// another type.
    static constexpr ref from_raw(const any_ref& raw) noexcept
    {
        ref r;
        r.raw_ = raw;
        return r;
    }

    constexpr std::size_t size() const noexcept { return raw_.size; }
    constexpr std::size_t size_bytes() const noexcept { return raw_.size * sizeof(T); }
    constexpr bool empty() const noexcept { return raw_.size == 0; }
    constexpr const any_ref& raw() const noexcept { return raw_; } ///< The untyped ref.

    /// The elements [offset, offset + count). A range outside this ref makes a ref that every op
    /// refuses with errc::out_of_bounds.
    constexpr ref subspan(std::size_t offset, std::size_t count) const noexcept
    {
        ref r = *this;
        const bool inside =
            raw_.offset != any_ref::invalid_offset && offset <= raw_.size && count <= raw_.size - offset;
        r.raw_.offset = inside ? raw_.offset + offset : any_ref::invalid_offset;
        r.raw_.size = count;
        return r;
    }

    constexpr ref first(std::size_t count) const noexcept { return subspan(0, count); } ///< The first elements.

    friend bool operator==(const ref&, const ref&) = default;

private:
    any_ref raw_;
};

static_assert(std::is_trivially_copyable_v<any_ref>);

} // namespace coaccel

#endif
