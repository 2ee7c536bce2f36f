#ifndef COACCEL_CONTEXT_OP_PROBLEM_HPP
#define COACCEL_CONTEXT_OP_PROBLEM_HPP

#include "context/buffer_table.hpp"

#include <coaccel/detail/op_error.hpp>

#include <optional>

// The messages of ops that a context refuses: they name the op by its description, the operand, and the values that do
// not fit. Composed on the error path only; none of these functions throws.
namespace coaccel::detail {

/// Without the element type: "blas.gemm" of "blas.gemm<f32>".
COACCEL_DECL std::string_view short_name(const op_info& info) noexcept;

/// Why operand i was refused. `held` is the buffer its ref names; nothing for one that was never made.
[[gnu::cold]] COACCEL_DECL error_code operand_error(const bound_op& o, std::size_t i, errc what,
                                                    context_identity identity,
                                                    const std::optional<buffer_facts>& held) noexcept;

/// Operands a and b overlap.
[[gnu::cold]] COACCEL_DECL error_code overlap_error(const bound_op& o, std::size_t a, std::size_t b) noexcept;

/// errc::unsupported_op.
[[gnu::cold]] COACCEL_DECL error_code not_implemented(const op_info& info, std::string_view backend) noexcept;

/// What a failed allocation reports: errc::out_of_memory says how much was asked for, every other error stays as it is.
[[gnu::cold]] COACCEL_DECL error_code allocation_error(const bound_op& o, const error_code& ec) noexcept;

/// The error of op i of a request: in a seq the message also says which op of it. An error of a vendor's stays as it
/// is.
[[gnu::cold]] COACCEL_DECL error_code placed(const request& r, std::size_t i, const error_code& ec) noexcept;

} // namespace coaccel::detail

#endif
