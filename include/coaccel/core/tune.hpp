#ifndef COACCEL_CORE_TUNE_HPP
#define COACCEL_CORE_TUNE_HPP

#include <coaccel/core/op.hpp>

#include <cstddef>
#include <cstdint>

namespace coaccel {

/// What a device has measured for an op.
struct tuning {
    std::uint32_t candidates = 0; ///< How many algorithms were measured. 0: the device has no choice, such as a CPU.
    float first_us = 0;           ///< The time of the first algorithm that ran, which is used without tuning.
    float best_us = 0;            ///< The time of the one that later ops use.
};

/// Ops for which a library has several algorithms.
template <class Op>
concept tunable_op = op<Op> && requires { requires Op::tunable; };

namespace detail {

/// Describes a tune op, given the description of its op.
COACCEL_DECL void describe_tune(op_info& info, const op_info& own);

} // namespace detail

/// Measures the algorithms that a library has for an op, with its operands, and keeps the fastest one for all later ops
/// of the device with the same fields and sizes. It only reads its operands.
template <tunable_op Op>
struct tune {
    using reply = tuning;                                                      ///< What was measured.
    static constexpr std::string_view name = Op::name;                         ///< The name of the op.
    static constexpr library lib = Op::lib;                                    ///< The library of the op.
    static constexpr capture_obstacle obstacle = capture_obstacle::host_work;  ///< It is not only work on a stream.
    static constexpr std::size_t operand_count = detail::count_operands<Op>(); ///< Those of the op.

    Op op; ///< The op.

    error_code check() const noexcept { return op.check(); } ///< As the op's own check.

    /// Describes the fields to the library.
    static void describe(op_info& info)
    {
        static_assert(offsetof(tune, op) == 0, "backends read the op at the address of this struct");
        detail::describe_tune(info, info_of<Op>());
    }
};

} // namespace coaccel

#endif
