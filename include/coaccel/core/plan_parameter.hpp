#ifndef COACCEL_CORE_PLAN_PARAMETER_HPP
#define COACCEL_CORE_PLAN_PARAMETER_HPP

#include <coaccel/core/ref.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace coaccel {

/// Names a parameter of a plan, which is a number that each run brings along; made by plan_builder::parameter. `bind`
/// gives it to a field of an op. A launch of a kernel takes it in the place of a number.
template <element T>
class plan_parameter {
public:
    using value_type = T; ///< The type of the number.

    constexpr plan_parameter() noexcept = default; ///< Names none.

    /// Made by plan_builder.
    static constexpr plan_parameter from_raw(const any_ref& slot) noexcept
    {
        plan_parameter made;
        made.slot_ = slot;
        return made;
    }

    constexpr const any_ref& raw() const noexcept { return slot_; } ///< The slot of the plan.

private:
    any_ref slot_;
};

/// A field of an op whose value is a parameter; made by `bind`.
template <class Op, element T>
struct field_binding {
    T Op::* field;          ///< The field.
    plan_parameter<T> from; ///< The parameter.
};

/// Makes a parameter the value of a field of an op: `b.add(op, bind(&blas::gemv<float>::alpha, alpha))`. The value that
/// the field has in the op is not used.
template <class Op, element T>
constexpr field_binding<Op, T> bind(T Op::* field, const plan_parameter<T>& from) noexcept
{
    return {field, from};
}

namespace detail {

template <class T>
inline constexpr bool is_plan_parameter = false;
template <class T>
inline constexpr bool is_plan_parameter<plan_parameter<T>> = true;

/// The number for which a parameter stands; another type stands for itself.
template <class T>
struct number_of {
    using type = T;
};
template <class T>
struct number_of<plan_parameter<T>> {
    using type = T;
};

/// A field of an op, by its offset in bytes, and the slot of the parameter that is its value.
struct bound_field {
    std::size_t offset = 0;
    any_ref slot;
};

} // namespace detail

/// An op with parameters of a plan among its values, which only a plan can contain; jit::launch makes it.
template <class Op, std::size_t N>
struct op_with_parameters {
    Op op;                                     ///< With zeros for the parameters.
    std::array<detail::bound_field, N> fields; ///< The parameters.
};

} // namespace coaccel

#endif
