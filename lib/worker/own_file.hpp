#ifndef COACCEL_WORKER_OWN_FILE_HPP
#define COACCEL_WORKER_OWN_FILE_HPP

#include <string>

namespace coaccel::worker {

/// The running program; empty when it is unknown.
std::string program_file();

/// The shared library that contains this code, or else the running program.
std::string own_file();

} // namespace coaccel::worker

#endif
