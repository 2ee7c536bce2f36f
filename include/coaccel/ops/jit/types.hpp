#ifndef COACCEL_OPS_JIT_TYPES_HPP
#define COACCEL_OPS_JIT_TYPES_HPP

#include <coaccel/core/dtype.hpp>
#include <coaccel/core/operand.hpp>
#include <coaccel/core/plan_parameter.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace coaccel::jit {

/// The extent of a grid or block.
struct dim3 {
    std::uint32_t x = 1; ///< At least 1.
    std::uint32_t y = 1; ///< At least 1.
    std::uint32_t z = 1; ///< At least 1.

    friend bool operator==(const dim3&, const dim3&) = default;
};

/// The number of blocks and threads, and the dynamic shared memory of each block.
struct launch_shape {
    dim3 grid{};                    ///< Blocks.
    dim3 block{};                   ///< Threads per block.
    std::uint32_t shared_bytes = 0; ///< Dynamic shared memory per block, in bytes.

    friend bool operator==(const launch_shape&, const launch_shape&) = default;
};

/// The maximum number of arguments of a launch.
inline constexpr std::size_t max_arguments = 64;
/// The maximum size in bytes of an argument that is not a buffer.
inline constexpr std::size_t max_argument_bytes = 64;

/// The type of a value or pointee, as far as host and device can both determine it. Types of the same size and meaning,
/// such as long and long long, have the same code.
enum class type_code : std::uint8_t {
    /// Cannot be determined from the kernel's name; matches any argument.
    unknown = 0,
    /// The first of the codes that are those of dtype.
    f16 = std::uint8_t(dtype::f16),
    /// The last of the codes that are those of dtype.
    c128 = std::uint8_t(dtype::c128),
    /// bool.
    boolean = 32,
    /// Any other class or enumeration of the kernel.
    structure,
    /// void, as a pointee only.
    nothing,
};

/// Whether a parameter is a value or a pointer.
enum class type_form : std::uint8_t { value, pointer, pointer_to_const };

/// The type of a kernel's parameter, or of an argument for it.
struct parameter_type {
    type_form form = type_form::value;   ///< A value or a pointer.
    type_code code = type_code::unknown; ///< The type of the value or pointee.
    /// Set for host types only: an enumeration whose underlying type is the code.
    bool enumeration = false;
    /// The size in bytes; 0 when only the device knows it.
    std::uint8_t size = 0;

    friend bool operator==(const parameter_type&, const parameter_type&) = default;
};

/// The location and type of one argument of a launch.
struct launch_argument {
    static constexpr std::uint8_t no_operand = 0xff; ///< The argument is a value.

    /// The offset in bytes from the beginning of the op.
    std::uint16_t offset = 0;
    /// The index of the operand whose address is the argument.
    std::uint8_t operand = no_operand;
    parameter_type type; ///< The type of the argument.
};

/// The type in C++ syntax, such as "const float*".
///
/// Exceptions: std::bad_alloc when there is no memory.
COACCEL_DECL std::string to_string(parameter_type t);

/// Whether an argument of this type matches the parameter.
COACCEL_DECL bool accepts(parameter_type parameter, parameter_type argument) noexcept;

} // namespace coaccel::jit

namespace coaccel::detail {

template <class T>
consteval jit::type_code jit_code_of()
{
    if constexpr (std::is_same_v<T, bool>)
        return jit::type_code::boolean;
    else if constexpr (std::is_enum_v<T>)
        return jit_code_of<std::underlying_type_t<T>>();
    else if constexpr (std::is_integral_v<T>) {
        constexpr auto first = std::is_signed_v<T> ? dtype::i8 : dtype::u8;
        constexpr int step = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return jit::type_code(int(first) + step);
    } else if constexpr (element<T>)
        return jit::type_code(dtype_v<T>);
    else
        return jit::type_code::structure;
}

template <class T>
consteval bool is_jit_value()
{
    return std::is_trivially_copyable_v<T> && sizeof(T) <= jit::max_argument_bytes && alignof(T) <= 16 &&
           !std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T> &&
           !std::is_same_v<T, long double> && (!std::is_integral_v<T> || sizeof(T) <= 8);
}

template <class T>
inline constexpr bool is_ref = false;
template <class T>
inline constexpr bool is_ref<ref<T>> = true;

/// The type of a parameter of a host function.
template <class P>
consteval jit::parameter_type jit_type_of_parameter()
{
    if constexpr (std::is_pointer_v<P>) {
        using target = std::remove_pointer_t<P>;
        constexpr auto form = std::is_const_v<target> ? jit::type_form::pointer_to_const : jit::type_form::pointer;
        if constexpr (std::is_void_v<target>)
            return {form, jit::type_code::nothing, false, sizeof(P)};
        else
            return {form, jit_code_of<std::remove_cv_t<target>>(), false, sizeof(P)};
    } else
        return {jit::type_form::value, jit_code_of<P>(), std::is_enum_v<P>, sizeof(P)};
}

/// The type of an argument of a launch.
template <class A>
consteval jit::parameter_type jit_type_of_argument()
{
    if constexpr (is_operand<A>)
        return {A::mode == access::read ? jit::type_form::pointer_to_const : jit::type_form::pointer,
                jit::type_code(dtype_v<typename A::value_type>), false, sizeof(void*)};
    else
        return {jit::type_form::value, jit_code_of<A>(), std::is_enum_v<A>, sizeof(A)};
}

} // namespace coaccel::detail

namespace coaccel::jit {

/// The valid argument types of a kernel launch: in, out, inout; numbers, enumerations and small trivially copyable
/// structures.
template <class A>
concept argument =
    (detail::is_operand<A> && !detail::is_optional<A>) ||
    (detail::is_jit_value<A>() && !detail::has_operands<A> && !detail::is_ref<A> && !detail::is_plan_parameter<A>);

/// The valid parameter types of a host function: pointers to elements, and the values of `argument`.
template <class P>
concept host_parameter =
    (std::is_pointer_v<P> && !std::is_function_v<std::remove_pointer_t<P>>) || detail::is_jit_value<P>();

} // namespace coaccel::jit

#endif
