#ifndef COACCEL_POSIX_ENVIRONMENT_HPP
#define COACCEL_POSIX_ENVIRONMENT_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace coaccel::detail {

/// The rights of a process, compared with those of the user that started it.
enum class rights : std::uint8_t {
    /// The same rights as that user.
    same,
    /// More rights, for example in a program that is set-uid or has file capabilities. Variables that the user has set
    /// must not be trusted.
    elevated,
};

/// From AT_SECURE, which keeps its value from the start of the program, even if the program drops its rights later.
COACCEL_DECL rights rights_of_process() noexcept;

/// Each entry is NAME=value.
using environment = std::vector<std::string>;

/// Copies `variables`, which end with a null pointer like `environ`. With elevated rights it copies only those that
/// choose GPUs and name no file.
COACCEL_DECL environment copy_variables(const char* const* variables, rights with);

/// Copies the environment of this process, for this caller and for environment_value().
///
/// The C library does not allow a thread to read the environment while another changes it. So this is called where the
/// application can expect it, when a device is made, and never on a thread of this library.
COACCEL_DECL std::shared_ptr<const environment> copy_environment();

/// The value in the latest copy, from any thread; empty if the variable is not set. Makes a copy if there is none.
COACCEL_DECL std::string environment_value(const char* name);

} // namespace coaccel::detail

#endif
