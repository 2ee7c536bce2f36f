#ifndef COACCEL_POSIX_OWN_FILE_HPP
#define COACCEL_POSIX_OWN_FILE_HPP

#include <coaccel/core/config.hpp>

#include <string>

namespace coaccel::detail {

/// The running program; empty if it is unknown.
COACCEL_DECL std::string program_file();

/// The shared library that contains this code, otherwise the running program.
COACCEL_DECL std::string own_file();

} // namespace coaccel::detail

#endif
