#ifndef COACCEL_CONTEXT_FAULTS_OP_PROBLEM_HPP
#define COACCEL_CONTEXT_FAULTS_OP_PROBLEM_HPP

#include "context/buffers/buffer_table.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <optional>

// Error messages for ops that a context rejects. They name the op by its description, the operand, and the mismatched
// values. These functions run on the error path only and do not throw.
namespace coaccel::detail {

/// The name without the element type: "blas.gemm" for "blas.gemm<f32>".
COACCEL_DECL std::string_view short_name(const op_info& info) noexcept;

/// The error for a rejected operand i. `held` describes the buffer its ref names; empty if that buffer never existed.
[[gnu::cold]] COACCEL_DECL error_code operand_error(const bound_op& o, std::size_t i, errc what,
                                                    context_identity identity,
                                                    const std::optional<buffer_facts>& held) noexcept;

/// Operands a and b overlap.
[[gnu::cold]] COACCEL_DECL error_code overlap_error(const bound_op& o, std::size_t a, std::size_t b) noexcept;

/// errc::unsupported_op.
[[gnu::cold]] COACCEL_DECL error_code not_implemented(const op_info& info, std::string_view backend) noexcept;

/// The error of a failed allocation: errc::out_of_memory gets a message with the requested size, any other error is
/// returned unchanged.
[[gnu::cold]] COACCEL_DECL error_code allocation_error(const bound_op& o, const error_code& ec) noexcept;

/// The error of op i of a request. In a seq the message also gives the position of the op. Vendor errors are returned
/// unchanged.
[[gnu::cold]] COACCEL_DECL error_code placed(const request& r, std::size_t i, const error_code& ec) noexcept;

} // namespace coaccel::detail

#endif
