#ifndef COACCEL_POSIX_MACHINE_LIMITS_HPP
#define COACCEL_POSIX_MACHINE_LIMITS_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace coaccel::detail {

/// The limits set by the control groups of a process; the largest values where there is no limit.
struct cgroup_limits {
    std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
    /// A fraction of a CPU counts as a whole one.
    std::uint64_t cpus = std::numeric_limits<std::uint64_t>::max();
};

/// Returns the content of a file; nothing if it cannot be read.
using file_reader = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads the limits of cgroup versions 1 and 2, of the process's own group and of all groups above it.
COACCEL_DECL cgroup_limits read_cgroup_limits(const file_reader& read);

/// The bytes that this process may use: the machine's memory, or the limit of a control group if it is lower.
COACCEL_DECL std::uint64_t usable_memory();

/// The CPUs that this process may use: those of its affinity mask, or the limit of a control group if it is lower. At
/// least one.
COACCEL_DECL unsigned usable_cpus();

} // namespace coaccel::detail

#endif
