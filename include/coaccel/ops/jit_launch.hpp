#ifndef COACCEL_OPS_JIT_LAUNCH_HPP
#define COACCEL_OPS_JIT_LAUNCH_HPP

#include <coaccel/detail/packed_op.hpp>
#include <coaccel/ops/jit_kernel.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace coaccel::jit {

inline constexpr std::uint64_t launch_op_id = detail::hash("jit.launch");

/// What every launch begins with, so that a backend can run it without knowing the types of its arguments. As many
/// launch_argument as `count` says follow at once.
struct launch_head {
    std::uint64_t kernel = 0; ///< The id of the kernel.
    /// The host function, as the registry numbers them; 0: none.
    std::uint32_t host = 0;
    std::uint32_t count = 0;    ///< Of arguments.
    launch_shape shape;         ///< Grid, block and shared memory.
    std::uint32_t reserved = 0; ///< Zero.

    /// The first argument.
    const launch_argument* arguments() const noexcept { return reinterpret_cast<const launch_argument*>(this + 1); }
};

static_assert(sizeof(launch_head) % alignof(launch_argument) == 0);

/// Errors: errc::invalid_argument for a kernel that is none or gone, errc::invalid_launch for an empty grid or block,
/// errc::argument_mismatch when the arguments are not those of the kernel, with a message that says which.
COACCEL_DECL error_code check_launch(const launch_head& head);

COACCEL_DECL launch_head make_head(const kernel& k, const launch_shape& shape, std::size_t count) noexcept;

/// Runs a kernel over a grid; made by `launch`.
template <argument... Args>
class launch_op : public detail::packed_op<launch_head, Args...> {
    using base = detail::packed_op<launch_head, Args...>;

public:
    using reply = void;
    static constexpr std::string_view name = "jit.launch";
    static constexpr library lib = library::jit;

    launch_op() noexcept = default;
    /// Made by `launch`.
    launch_op(const kernel& k, const launch_shape& shape, const Args&... args) noexcept
        : base(make_head(k, shape, sizeof...(Args)), args...)
    {}

    error_code check() const { return check_launch(this->head()); }
    /// What the op needs until its end.
    std::shared_ptr<const void> keep() const noexcept { return keep_image(this->head().kernel); }

    static void describe(op_info& info)
    {
        info.id = launch_op_id;
        base::describe(info);
    }
};

/// An op that runs the kernel with these arguments: `in(a)`, `out(b)`, `inout(c)` for buffers and refs of them, which
/// the kernel takes as `const T*`, `T*` and `T*`; numbers, enumerations, half and its like, and plain structures of at
/// most 64 bytes as they are.
template <class... Args>
auto launch(const kernel& k, const launch_shape& shape, Args... args) noexcept
{
    static_assert(
        (argument<Args> && ...),
        "a kernel takes in(buffer), out(buffer), inout(buffer), numbers, enumerations and small plain structures");
    return launch_op<Args...>(k, shape, args...);
}

} // namespace coaccel::jit

#endif
