#ifndef COACCEL_PLAN_FILE_KERNEL_RECORDS_HPP
#define COACCEL_PLAN_FILE_KERNEL_RECORDS_HPP

#include "jit/image.hpp"
#include "plan/file/record_fields.hpp"

#include <memory>

namespace coaccel::detail {

/// Writes a kernel: its source, how to compile it, and what it was compiled to.
void write_kernel(tree_writer& out, const jit::image& i);

/// Reads and registers a kernel. Null after a problem.
std::shared_ptr<const jit::image> read_kernel(const node& record, file_problem& problem);

} // namespace coaccel::detail

#endif
