#ifndef COACCEL_CORE_MACHINE_LIMITS_HPP
#define COACCEL_CORE_MACHINE_LIMITS_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace coaccel::detail {

/// What the control groups of a process allow it to use; the largest values where nothing is limited.
struct cgroup_limits {
    std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
    /// A part of a CPU counts as a whole one.
    std::uint64_t cpus = std::numeric_limits<std::uint64_t>::max();
};

/// The content of a file; nothing where it cannot be read.
using file_reader = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads the limits of versions 1 and 2, of the process's own group and of all groups above it.
COACCEL_DECL cgroup_limits read_cgroup_limits(const file_reader& read);

/// Bytes this process may use: the machine's memory, or less where a control group says so.
COACCEL_DECL std::uint64_t usable_memory();

/// CPUs this process may use: those of its affinity mask, or fewer where a control group says so. At least one.
COACCEL_DECL unsigned usable_cpus();

} // namespace coaccel::detail

#endif
