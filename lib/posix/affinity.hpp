#ifndef COACCEL_POSIX_AFFINITY_HPP
#define COACCEL_POSIX_AFFINITY_HPP

#include <coaccel/core/config.hpp>

#include <vector>

namespace coaccel::detail {

/// A set of CPUs in the kernel's format, one bit per CPU; empty: unknown.
using cpu_mask = std::vector<unsigned long>;

/// The CPUs on which the calling thread may run.
COACCEL_DECL cpu_mask affinity_of_thread();

} // namespace coaccel::detail

#endif
