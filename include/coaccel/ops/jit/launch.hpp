#ifndef COACCEL_OPS_JIT_LAUNCH_HPP
#define COACCEL_OPS_JIT_LAUNCH_HPP

#include <coaccel/ops/detail/packed_op.hpp>
#include <coaccel/ops/detail/packed_parameters.hpp>
#include <coaccel/ops/jit/kernel.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace coaccel::jit {

/// The ID of all launch ops in op_info.
inline constexpr std::uint64_t launch_op_id = detail::hash("jit.launch");

/// The common beginning of every launch op, so that a backend can run it without knowing the types of its arguments.
/// `count` objects of type launch_argument follow directly.
struct launch_head {
    std::uint64_t kernel = 0; ///< The id of the kernel.
    /// The number of the host function in the registry; 0: none.
    std::uint32_t host = 0;
    std::uint32_t count = 0;    ///< The number of arguments.
    launch_shape shape;         ///< Grid, block and shared memory.
    std::uint32_t reserved = 0; ///< Zero.

    /// The first argument.
    const launch_argument* arguments() const noexcept { return reinterpret_cast<const launch_argument*>(this + 1); }

    /// Differs between kernels and between numbers of blocks.
    std::uint64_t work() const noexcept
    {
        return (kernel * 0x100000001b3ull) ^ (std::uint64_t(shape.grid.x) * shape.grid.y * shape.grid.z);
    }
};

static_assert(sizeof(launch_head) % alignof(launch_argument) == 0);

/// Errors: errc::invalid_argument for a kernel handle that is empty or whose kernel no longer exists,
/// errc::invalid_launch for an empty grid or block, errc::argument_mismatch, with a message that names the argument,
/// when the arguments do not match the kernel.
/// Exceptions: std::bad_alloc when there is no memory for the message.
COACCEL_DECL error_code check_launch(const launch_head& head);

/// The head of a launch op with `count` arguments; `launch` calls it.
COACCEL_DECL launch_head make_head(const kernel& k, const launch_shape& shape, std::size_t count) noexcept;

/// Runs a kernel over a grid; made by `launch`.
///
/// Exceptions: check() throws those of check_launch. Making and copying an op does not throw.
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
    /// The image, which must live until the op ends.
    std::shared_ptr<const void> keep() const noexcept { return keep_image(this->head().kernel); }

    static void describe(op_info& info)
    {
        info.id = launch_op_id;
        info.work = [](const void* op) noexcept { return static_cast<const launch_head*>(op)->work(); };
        base::describe(info);
        for (op_field& f : info.fields)
            if (f.what == op_field::kind::value && f.holds == op_field::content::number)
                f.variable = op_field::parameter::by_value;
    }
};

/// Makes an op that runs the kernel with these arguments. `in(a)`, `out(b)` and `inout(c)`, for buffers and refs of
/// them, are `const T*`, `T*` and `T*` in the kernel. Numbers, enumerations, half and similar types, and trivially
/// copyable structures of at most 64 bytes are passed by value. With a plan_parameter among them it makes an
/// op_with_parameters for a plan.
template <class... Args>
auto launch(const kernel& k, const launch_shape& shape, Args... args) noexcept
{
    static_assert(
        (argument<typename detail::number_of<Args>::type> && ...),
        "a kernel takes in(buffer), out(buffer), inout(buffer), numbers, enumerations and small plain structures");
    using op_type = launch_op<typename detail::number_of<Args>::type...>;
    if constexpr ((detail::is_plan_parameter<Args> || ...))
        return detail::add_parameters(op_type(k, shape, detail::plain_argument(args)...), args...);
    else
        return op_type(k, shape, args...);
}

} // namespace coaccel::jit

#endif
