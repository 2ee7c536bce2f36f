#ifndef COACCEL_OPS_DETAIL_PACKED_OP_HPP
#define COACCEL_OPS_DETAIL_PACKED_OP_HPP

#include <coaccel/core/detail/field_names.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/ops/jit/types.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace coaccel::detail {

/// An op whose arguments the caller chooses. It consists of a head, the offset and type of each argument, and the
/// arguments. A backend runs it without knowing their C++ types.
template <class Head, jit::argument... Args>
class packed_op {
    static constexpr std::size_t count = sizeof...(Args);
    static_assert(count <= jit::max_arguments, "too many arguments");
    static_assert(sizeof(Head) % alignof(jit::launch_argument) == 0, "the arguments follow the head at once");

public:
    static constexpr std::size_t operand_count = (std::size_t(is_operand<Args>) + ... + 0);

    packed_op() noexcept = default;

    packed_op(const Head& head, const Args&... args) noexcept : head_(head), arguments_(describe_arguments())
    {
        [[maybe_unused]] std::size_t i = 0;
        (std::memcpy(reinterpret_cast<std::byte*>(this) + arguments_[i++].offset, &args, sizeof(Args)), ...);
    }

    const Head& head() const noexcept { return head_; }

    static void describe(op_info& info)
    {
        const auto arguments = describe_arguments();
        for (std::size_t i = 0; i < count; ++i) {
            const jit::launch_argument& a = arguments[i];
            op_field field{argument_name(i), a.offset, sizes[i], op_field::kind::value};
            if (a.operand != jit::launch_argument::no_operand) {
                field.what = op_field::kind::operand;
                field.mode = modes[i];
                field.type = dtype(a.type.code);
                info.operands.push_back(field);
            } else
                describe_argument[i](field);
            info.fields.push_back(field);
        }
    }

private:
    template <class A>
    static constexpr access mode_of() noexcept
    {
        if constexpr (is_operand<A>)
            return A::mode;
        else
            return access::read;
    }

    static constexpr std::array<void (*)(op_field&) noexcept, count> describe_argument{&describe_value<Args>...};
    static constexpr std::array<access, count> modes{mode_of<Args>()...};
    static constexpr std::array<std::uint16_t, count> sizes{sizeof(Args)...};

    static constexpr std::size_t round_up(std::size_t n, std::size_t alignment)
    {
        return (n + alignment - 1) / alignment * alignment;
    }

    static constexpr std::size_t value_bytes()
    {
        std::size_t n = 0;
        ((n = round_up(n, alignof(Args)) + sizeof(Args)), ...);
        return std::max<std::size_t>(n, 1);
    }

    static constexpr std::array<jit::launch_argument, count> describe_arguments()
    {
        std::array<jit::launch_argument, count> made{};
        [[maybe_unused]] std::size_t at = offsetof(packed_op, values_);
        [[maybe_unused]] std::size_t i = 0;
        [[maybe_unused]] std::uint8_t operand = 0;
        ((at = round_up(at, alignof(Args)),
          made[i++] = {static_cast<std::uint16_t>(at), is_operand<Args> ? operand++ : jit::launch_argument::no_operand,
                       jit_type_of_argument<Args>()},
          at += sizeof(Args)),
         ...);
        return made;
    }

    Head head_{};
    std::array<jit::launch_argument, count> arguments_{};
    alignas(16) std::byte values_[value_bytes()]{};
};

} // namespace coaccel::detail

#endif
