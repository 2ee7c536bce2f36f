#ifndef COACCEL_PLAN_FILE_KNOWN_OPS_HPP
#define COACCEL_PLAN_FILE_KNOWN_OPS_HPP

#include <coaccel/core/detail/op_record.hpp>

#include <string_view>
#include <vector>

namespace coaccel::detail {

/// An op that can be in a file, because its description does not differ between programs.
struct known_op {
    const op_info* info;
    /// The op with the default values of all fields, for those that a file does not contain.
    std::vector<op_unit> defaults;
};

/// The op with the name in op_info, such as "blas.gemm<f32>"; null if there is none. Launches of kernels and calls of
/// plug-ins are not among them.
COACCEL_DECL const known_op* find_known_op(std::string_view name);

} // namespace coaccel::detail

#endif
