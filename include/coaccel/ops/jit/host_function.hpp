#ifndef COACCEL_OPS_JIT_HOST_FUNCTION_HPP
#define COACCEL_OPS_JIT_HOST_FUNCTION_HPP

#include <coaccel/ops/jit/types.hpp>

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

namespace coaccel::jit {

/// A function of the program that does on the host the work of a kernel on the device.
struct host_function {
    using erased = void (*)(); ///< A function pointer without parameter types.

    /// Calls the function with arguments in the form of cuLaunchKernel: a pointer to each. Any exception becomes
    /// errc::user_exception.
    error_code (*invoke)(erased function, const launch_shape& shape, void* const* arguments) noexcept = nullptr;
    erased function = nullptr;                    ///< The function to call.
    std::span<const parameter_type> parameters{}; ///< The parameters after the shape.

    explicit operator bool() const noexcept { return function != nullptr; }
};

} // namespace coaccel::jit

namespace coaccel::detail {

template <class P>
P load_jit_argument(const void* from) noexcept
{
    std::array<std::byte, sizeof(P)> bytes;
    std::memcpy(bytes.data(), from, sizeof(P));
    return std::bit_cast<P>(bytes);
}

template <jit::host_parameter... Ps>
struct jit_host_call {
    using function = void (*)(const jit::launch_shape&, Ps...);
    static constexpr std::array<jit::parameter_type, sizeof...(Ps)> types{jit_type_of_parameter<Ps>()...};

    static error_code invoke(jit::host_function::erased f, const jit::launch_shape& shape,
                             void* const* arguments) noexcept
    {
        try {
            call(reinterpret_cast<function>(f), shape, arguments, std::index_sequence_for<Ps...>{});
        } catch (...) {
            return errc::user_exception;
        }
        return {};
    }

private:
    template <std::size_t... I>
    static void call(function f, const jit::launch_shape& shape, [[maybe_unused]] void* const* arguments,
                     std::index_sequence<I...>)
    {
        f(shape, load_jit_argument<Ps>(arguments[I])...);
    }
};

} // namespace coaccel::detail

namespace coaccel::jit {

/// Makes a host_function from a function whose first parameter is the shape of the launch; compile_options::host calls
/// it.
template <host_parameter... Ps>
host_function make_host_function(void (*f)(const launch_shape&, Ps...)) noexcept
{
    static_assert(sizeof...(Ps) <= max_arguments, "too many parameters");
    using call = detail::jit_host_call<Ps...>;
    return {&call::invoke, reinterpret_cast<host_function::erased>(f), call::types};
}

} // namespace coaccel::jit

#endif
