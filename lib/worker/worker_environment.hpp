#ifndef COACCEL_WORKER_WORKER_ENVIRONMENT_HPP
#define COACCEL_WORKER_WORKER_ENVIRONMENT_HPP

#include <coaccel/core/config.hpp>

#include <string>
#include <vector>

namespace coaccel::worker {

/// The environment of a worker: what it needs from that of this process, and the vendor's libraries that the program
/// has chosen, so that both processes open the same ones.
COACCEL_DECL std::vector<std::string> worker_environment();

} // namespace coaccel::worker

#endif
