#ifndef COACCEL_PLAN_FILE_PACKED_ARGUMENTS_HPP
#define COACCEL_PLAN_FILE_PACKED_ARGUMENTS_HPP

#include "plan/file/op_values.hpp"

#include <memory>
#include <span>

// Launches of kernels and calls of plug-ins, whose descriptions differ between calls: a file contains the type of each
// argument.
namespace coaccel::detail {

/// The type that an argument gets when it is read from a file.
jit::parameter_type type_in_file(const op_field& f) noexcept;

/// Writes a list of all arguments. Returns null, or the first field that a file cannot describe.
const op_field* write_arguments(tree_writer& out, op_value_writer& values, const listed_op& o,
                                std::span<const jit::launch_argument> arguments);

/// The description of an op that was read from a file, and what the op uses.
struct packed_description {
    op_info info;
    std::shared_ptr<const jit::image> kernel;
};

/// An op that was read from a file.
struct packed_read {
    std::vector<op_unit> op;
    std::shared_ptr<packed_description> own;
};

/// Reads the arguments from a list and makes the op with its description. Returns false after a problem.
template <class Head>
bool read_arguments(const node& list, Head head, op_value_reader& values, file_problem& problem, packed_read& made);

extern template bool read_arguments(const node&, jit::launch_head, op_value_reader&, file_problem&, packed_read&);
extern template bool read_arguments(const node&, plugin::call_head, op_value_reader&, file_problem&, packed_read&);

} // namespace coaccel::detail

#endif
