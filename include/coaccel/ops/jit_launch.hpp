#ifndef COACCEL_OPS_JIT_LAUNCH_HPP
#define COACCEL_OPS_JIT_LAUNCH_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/ops/jit_kernel.hpp>
#include <coaccel/ops/jit_types.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

namespace coaccel::jit {

inline constexpr std::uint64_t launch_op_id = detail::hash("jit.launch");

/// Where one argument of a launch is, and what.
struct launch_argument {
    static constexpr std::uint8_t no_operand = 0xff;

    /// From the beginning of the op.
    std::uint16_t offset = 0;
    /// Which operand of the op; its address is then the argument.
    std::uint8_t operand = no_operand;
    parameter_type type;
};

/// What every launch begins with, so that a backend can run it without knowing the types of its arguments. As many
/// launch_argument as `count` says follow at once.
struct launch_head {
    std::uint64_t kernel = 0;
    /// The host function, as the registry numbers them; 0: none.
    std::uint32_t host = 0;
    std::uint32_t count = 0;
    launch_shape shape;
    std::uint32_t reserved = 0;

    const launch_argument* arguments() const noexcept { return reinterpret_cast<const launch_argument*>(this + 1); }
};

static_assert(sizeof(launch_head) % alignof(launch_argument) == 0);

/// Errors: errc::invalid_argument for a kernel that is none or gone, errc::invalid_launch for an empty grid or block,
/// errc::argument_mismatch when the arguments are not those of the kernel, with a message that says which.
COACCEL_DECL error_code check_launch(const launch_head& head);

COACCEL_DECL launch_head make_head(const kernel& k, const launch_shape& shape, std::size_t count) noexcept;

/// Runs a kernel over a grid; made by `launch`.
template <argument... Args>
class launch_op {
    static constexpr std::size_t count = sizeof...(Args);
    static constexpr std::size_t operand_count = (std::size_t(detail::is_operand<Args>) + ... + 0);
    static_assert(count <= max_arguments, "too many arguments");
    static_assert(operand_count <= max_operands, "too many operands");

public:
    using reply = void;
    static constexpr std::string_view name = "jit.launch";
    static constexpr library lib = library::jit;

    launch_op() noexcept = default;

    launch_op(const kernel& k, const launch_shape& shape, const Args&... args) noexcept
        : head_(make_head(k, shape, count)), arguments_(describe_arguments())
    {
        [[maybe_unused]] std::size_t i = 0;
        (std::memcpy(reinterpret_cast<std::byte*>(this) + arguments_[i++].offset, &args, sizeof(Args)), ...);
    }

    const launch_head& head() const noexcept { return head_; }
    error_code check() const { return check_launch(head_); }
    /// What the op needs until its end.
    std::shared_ptr<const void> keep() const noexcept { return keep_image(head_.kernel); }

    static void describe(op_info& info)
    {
        static constexpr std::string_view names[] = {"a0", "a1", "a2",  "a3",  "a4",  "a5",  "a6",  "a7",
                                                     "a8", "a9", "a10", "a11", "a12", "a13", "a14", "a15"};
        info.id = launch_op_id;
        const auto arguments = describe_arguments();
        for (std::size_t i = 0; i < count; ++i) {
            const launch_argument& a = arguments[i];
            op_field field{names[i], a.offset, sizes[i], op_field::kind::value};
            if (a.operand != launch_argument::no_operand) {
                field.what = op_field::kind::operand;
                field.mode = modes[i];
                field.type = dtype(a.type.code);
                info.operands.push_back(field);
            }
            info.fields.push_back(field);
        }
    }

private:
    template <class A>
    static constexpr access mode_of() noexcept
    {
        if constexpr (detail::is_operand<A>)
            return A::mode;
        else
            return access::read;
    }

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

    static constexpr std::array<launch_argument, count> describe_arguments()
    {
        std::array<launch_argument, count> made{};
        [[maybe_unused]] std::size_t at = offsetof(launch_op, values_);
        [[maybe_unused]] std::size_t i = 0;
        [[maybe_unused]] std::uint8_t operand = 0;
        ((at = round_up(at, alignof(Args)),
          made[i++] = {static_cast<std::uint16_t>(at),
                       detail::is_operand<Args> ? operand++ : launch_argument::no_operand,
                       detail::jit_type_of_argument<Args>()},
          at += sizeof(Args)),
         ...);
        return made;
    }

    launch_head head_;
    std::array<launch_argument, count> arguments_{};
    alignas(16) std::byte values_[value_bytes()]{};
};

/// An op that runs the kernel with these arguments: `in(a)`, `out(b)`, `inout(c)` for buffers and refs of them, which
/// the kernel takes as `const T*`, `T*` and `T*`; numbers, enumerations, half and its like, and plain structures of at
/// most 64 bytes as they are.
template <class... Args>
launch_op<Args...> launch(const kernel& k, const launch_shape& shape, Args... args) noexcept
{
    static_assert(
        (argument<Args> && ...),
        "a kernel takes in(buffer), out(buffer), inout(buffer), numbers, enumerations and small plain structures");
    return launch_op<Args...>(k, shape, args...);
}

} // namespace coaccel::jit

#endif
