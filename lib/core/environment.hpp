#ifndef COACCEL_CORE_ENVIRONMENT_HPP
#define COACCEL_CORE_ENVIRONMENT_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace coaccel::detail {

/// The rights of a process, compared with those of the user that started it.
enum class rights : std::uint8_t {
    /// No more than that user has.
    same,
    /// More, as of a program that is set-uid or has file capabilities. What that user has put into the environment must
    /// not be trusted.
    elevated,
};

/// From AT_SECURE, which stays what it was when the program was started, also when it drops its rights later.
COACCEL_DECL rights rights_of_process() noexcept;

/// Each as NAME=value.
using environment = std::vector<std::string>;

/// A copy of `variables`, which end with a null pointer as `environ` does. With elevated rights only of those that
/// choose GPUs and name no file.
COACCEL_DECL environment copy_variables(const char* const* variables, rights with);

/// Copies the environment of this process, for this caller and for environment_value().
///
/// The C library lets no thread read the environment while another one changes it. So this is called where the
/// application can expect it, when a device is made, and never on a thread of this library.
COACCEL_DECL std::shared_ptr<const environment> copy_environment();

/// The value in the latest copy, from any thread; empty when the variable is not set. Without a copy it makes one.
COACCEL_DECL std::string environment_value(const char* name);

} // namespace coaccel::detail

#endif
