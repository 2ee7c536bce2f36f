#ifndef COACCEL_CORE_SYSTEM_INFO_HPP
#define COACCEL_CORE_SYSTEM_INFO_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace coaccel {

/// The status of a library that is opened at run time.
struct library_report {
    std::string name; ///< The name of the library.
    /// The path where it was found; empty if it was not found.
    std::string path;
    std::string version; ///< Empty if unknown.
    /// Why it cannot be used; empty if it can.
    std::string problem;
    /// Features unavailable without this library.
    std::string disables;
};

/// A GPU as its driver describes it.
struct gpu_report {
    int ordinal = 0;  ///< The ordinal for device_options.
    std::string name; ///< The name of the GPU.
    /// Ten times the major version plus the minor version.
    int compute_capability = 0;
    int multiprocessors = 0; ///< The number of multiprocessors.
    /// Its memory in bytes.
    std::uint64_t memory = 0;
    /// Whether memory can outlive the process that made it: if not, constants of plans are uploaded to each worker.
    bool exports_memory = false;
};

/// The hardware and the libraries that coaccel found on this machine.
struct system_info {
    std::string coaccel_version; ///< The version of this library.
    /// Whether this build has the CUDA backend; without it `gpus` and `libraries` are empty.
    bool cuda_built = false;
    std::vector<gpu_report> gpus;          ///< All GPUs of the driver.
    std::vector<library_report> libraries; ///< The vendor libraries, found or not.
    /// Whether this build has the host backend.
    bool host_backend = false;
    /// The number of hardware threads of the CPU.
    unsigned host_threads = 0;
};

} // namespace coaccel

#endif
