#ifndef COACCEL_WORKER_WORKER_ENVIRONMENT_HPP
#define COACCEL_WORKER_WORKER_ENVIRONMENT_HPP

#include "core/environment.hpp"

#include <coaccel/core/config.hpp>

namespace coaccel::worker {

/// The variables that a worker needs of those that this process has, and no more.
COACCEL_DECL detail::environment needed_variables(const detail::environment& of_process);

/// The environment of a worker: the variables it needs, and the vendor's libraries that the program has chosen, so that
/// both processes open the same ones.
COACCEL_DECL detail::environment worker_environment(const detail::environment& of_process);

} // namespace coaccel::worker

#endif
