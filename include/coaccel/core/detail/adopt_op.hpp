#ifndef COACCEL_CORE_DETAIL_ADOPT_OP_HPP
#define COACCEL_CORE_DETAIL_ADOPT_OP_HPP

#include <coaccel/core/detail/transfer_ops.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace coaccel::detail {

/// An address as text, such as "0x7f00": for messages, which must not allocate before they are composed.
class address_text {
public:
    explicit address_text(const void* p) noexcept
    {
        const auto number = reinterpret_cast<std::uintptr_t>(p);
        const char* end = std::to_chars(text_.data() + size_, text_.data() + text_.size(), number, 16).ptr;
        size_ = static_cast<std::size_t>(end - text_.data());
    }

    std::string_view view() const noexcept { return {text_.data(), size_}; }

private:
    std::array<char, 2 + 2 * sizeof(std::uintptr_t)> text_{'0', 'x'};
    std::size_t size_ = 2;
};

/// The op behind async_adopt: a buffer over memory that other code has allocated.
struct adopt_op {
    using reply = allocation;
    static constexpr std::string_view name = "memory.adopt";
    static constexpr library lib = library::memory;
    static constexpr op_role role = op_role::adopt;

    void* pointer = nullptr;
    std::uint64_t count = 0;
    dtype type = dtype::u8;
    /// Keeps the memory alive; copied by the context. Null, or an empty pointer: the caller does it.
    const std::shared_ptr<void>* owner = nullptr;

    std::uint64_t bytes() const noexcept { return count * size_of(type); }

    error_code check() const noexcept
    {
        if (!pointer)
            return op_error(errc::invalid_argument, name, {"pointer is null"});
        if (auto ec = check_count(name, count, type))
            return ec;
        // A GPU accesses an element as a whole, also a complex number.
        if (reinterpret_cast<std::uintptr_t>(pointer) % size_of(type) == 0)
            return {};
        return op_error(errc::invalid_argument, name,
                        {"pointer is ", address_text(pointer).view(), ", which is not a multiple of ", size_of(type),
                         ", the size of ", to_string(type)});
    }

    BOOST_DESCRIBE_CLASS(adopt_op, (), (pointer, count, type, owner), (), ())
};

} // namespace coaccel::detail

#endif
