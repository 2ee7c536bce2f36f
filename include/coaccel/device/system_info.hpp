#ifndef COACCEL_DEVICE_SYSTEM_INFO_HPP
#define COACCEL_DEVICE_SYSTEM_INFO_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coaccel {

/// What became of a library that is opened at run time.
struct library_report {
    std::string name; ///< Of the library.
    /// Where it was found; empty when it was not.
    std::string path;
    std::string version; ///< Empty when it is not known.
    /// Why it cannot be used; empty when it can.
    std::string problem;
    /// What there is not without it.
    std::string disables;
};

/// A GPU as its driver describes it.
struct gpu_report {
    int ordinal = 0;  ///< As device_options names it.
    std::string name; ///< Of the GPU.
    /// Ten times the major number plus the minor one.
    int compute_capability = 0;
    int multiprocessors = 0; ///< How many.
    /// In bytes.
    std::uint64_t memory = 0;
};

/// What coaccel finds on this machine.
struct system_info {
    std::string coaccel_version; ///< Of this library.
    /// Whether this build has the CUDA backend; without it there are no GPUs and no libraries here.
    bool cuda_built = false;
    std::vector<gpu_report> gpus;          ///< As many as the driver has.
    std::vector<library_report> libraries; ///< The vendor libraries, found or not.
    /// Whether this build has the host backend.
    bool host_backend = false;
    /// How many threads the CPU runs at once.
    unsigned host_threads = 0;
};

/// Looks at the machine: opens each library and asks the driver for its GPUs, but makes no context.
///
/// Blocks, for a second or more where the libraries have to be read from disk: not for an executor's thread.
/// What is missing is in the report; there are no errors.
COACCEL_DECL system_info inspect_system();

/// Lines for people to read: what was found where, what is missing, and what that disables.
COACCEL_DECL std::string to_string(const system_info& info);

} // namespace coaccel

#endif
