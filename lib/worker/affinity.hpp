#ifndef COACCEL_WORKER_AFFINITY_HPP
#define COACCEL_WORKER_AFFINITY_HPP

#include <coaccel/core/config.hpp>

#include <vector>

namespace coaccel::worker {

/// A set of CPUs as the kernel has it: a bit for each; empty: unknown.
using cpu_mask = std::vector<unsigned long>;

/// The CPUs that the calling thread may run on.
COACCEL_DECL cpu_mask affinity_of_thread();

} // namespace coaccel::worker

#endif
