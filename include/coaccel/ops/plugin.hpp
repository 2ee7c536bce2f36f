#ifndef COACCEL_OPS_PLUGIN_HPP
#define COACCEL_OPS_PLUGIN_HPP

#include <coaccel/ops/detail/packed_op.hpp>

#include <cstdint>
#include <string_view>

namespace coaccel::plugin {

/// The ID of all call ops in op_info.
inline constexpr std::uint64_t call_op_id = coaccel::detail::hash("plugin.call");

/// The version of a plug-in function for which a call was written.
struct version {
    std::uint32_t number = 0; ///< As stated by the plug-in; 0: every version is accepted.
};

/// The common beginning of every call op. `count` objects of type jit::launch_argument follow directly.
struct call_head {
    static constexpr std::size_t room = 64; ///< For the name and its terminating zero.

    /// The zero-terminated name.
    char function[room]{};
    std::uint32_t count = 0;   ///< The number of arguments.
    std::uint32_t version = 0; ///< The version of the function that the call needs; 0: any.

    /// The first argument.
    const jit::launch_argument* arguments() const noexcept
    {
        return reinterpret_cast<const jit::launch_argument*>(this + 1);
    }

    /// Differs between functions.
    std::uint64_t work() const noexcept { return coaccel::detail::hash(function); }
};

/// The head of a call op with `count` arguments; `call` uses it.
COACCEL_DECL call_head make_head(std::string_view function, version wanted, std::size_t count) noexcept;

/// Errors: errc::invalid_argument for a name that is empty or longer than 63 characters, errc::function_missing,
/// errc::function_version, errc::argument_mismatch. The check runs in the process of the context, where the plug-ins
/// are loaded.
/// Exceptions: std::bad_alloc when there is no memory for the message.
COACCEL_DECL error_code check_call(const call_head& head);

/// Calls a function of the device's plug-in; made by `call`.
///
/// Exceptions: check() throws those of check_call. Making and copying an op does not throw.
template <jit::argument... Args>
class call_op : public coaccel::detail::packed_op<call_head, Args...> {
    using base = coaccel::detail::packed_op<call_head, Args...>;

public:
    using reply = void;
    static constexpr std::string_view name = "plugin.call";
    static constexpr library lib = library::user;
    static constexpr capture_obstacle obstacle = capture_obstacle::unknown_code;

    call_op() noexcept = default;
    /// Made by `call`.
    call_op(std::string_view function, version wanted, const Args&... args) noexcept
        : base(make_head(function, wanted, sizeof...(Args)), args...)
    {}

    error_code check() const { return check_call(this->head()); }

    static void describe(op_info& info)
    {
        info.id = call_op_id;
        info.work = [](const void* op) noexcept { return static_cast<const call_head*>(op)->work(); };
        base::describe(info);
    }
};

/// Makes an op that calls a function of the plug-in that device_options names, in the process of the device's context.
/// Devices whose contexts are in one process share the functions of their plug-ins.
///
/// The function receives `in(a)`, `out(b)` and `inout(c)` as spans of or pointers to `const T`, `T` and `T`. Trivially
/// copyable values of at most 64 bytes are passed as they are.
///
/// `wanted` is the version for which the call was written; a plug-in in which the function has another one is refused.
///
/// Errors: errc::function_missing, errc::function_version, errc::argument_mismatch, and errc::user_exception when the
/// function threw, each with an explanatory message.
template <class... Args>
auto call(std::string_view function, version wanted, Args... args) noexcept
{
    static_assert(
        (jit::argument<Args> && ...),
        "a function takes in(buffer), out(buffer), inout(buffer), numbers, enumerations and plain structures");
    return call_op<Args...>(function, wanted, args...);
}

/// As above, for every version of the function.
template <class... Args>
auto call(std::string_view function, Args... args) noexcept
{
    return call(function, version{}, args...);
}

} // namespace coaccel::plugin

#endif
