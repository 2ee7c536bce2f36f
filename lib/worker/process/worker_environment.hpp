#ifndef COACCEL_WORKER_PROCESS_WORKER_ENVIRONMENT_HPP
#define COACCEL_WORKER_PROCESS_WORKER_ENVIRONMENT_HPP

#include "posix/environment.hpp"

#include <coaccel/core/config.hpp>

namespace coaccel::worker {

/// The subset of this process's variables that a worker needs.
COACCEL_DECL detail::environment needed_variables(const detail::environment& of_process);

/// The environment of a worker: the variables it needs, and the vendor libraries that the program has chosen, so that
/// both processes load the same ones.
COACCEL_DECL detail::environment worker_environment(const detail::environment& of_process);

} // namespace coaccel::worker

#endif
