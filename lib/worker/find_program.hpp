#ifndef COACCEL_WORKER_FIND_PROGRAM_HPP
#define COACCEL_WORKER_FIND_PROGRAM_HPP

#include <coaccel/core/result.hpp>

#include <string>
#include <vector>

namespace coaccel::worker {

/// Where the worker program may be when this library, or the program it is part of, is in `directory`; best first.
COACCEL_DECL std::vector<std::string> program_places(const std::string& directory);

/// The worker program: `option`, else what COACCEL_WORKER names, else the one that was installed or built with this
/// library. errc::worker_missing, with the places looked at, when there is none that can be run.
COACCEL_DECL result<std::string> find_program(const char* option);

} // namespace coaccel::worker

#endif
