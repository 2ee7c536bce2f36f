#ifndef COACCEL_HOST_HOST_OPTIONS_HPP
#define COACCEL_HOST_HOST_OPTIONS_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/host/fault_injector.hpp>

#include <cstdint>

namespace coaccel {

/// Where the host backend runs its ops.
enum class host_mode : std::uint8_t {
    /// Asynchronously, on the backend's own threads.
    pool,
    /// Inline, during a turn of the device on its executor, without any thread. For tests and tiny programs.
    inline_,
};

/// Options of the host backend, which uses the CPU as an accelerator.
struct host_options {
    host_mode mode = host_mode::pool; ///< Where ops run.
    /// Threads of the pool; 0: one per core of the machine.
    int threads = 0;
    /// The maximum bytes of buffers; 0: the memory of the machine, or the limit of the control group.
    std::uint64_t memory_limit = 0;
    /// The maximum bytes of pinned buffers; 0: no separate limit.
    std::uint64_t pinned_limit = 0;
    /// One of this many runs of each instance of a plan is measured, for traces. 0: none. See trace_kind::measured.
    int timed_runs = 0;
    /// Faults to inject, counted over the lifetime of the device.
    host_faults faults{};
    /// Injects faults while the program runs; if set, it is used instead of `faults`. Must outlive the device. With
    /// isolation::worker it injects the same faults: it counts the ops in this process, and its delay and memory limit
    /// are sent to every worker.
    /// A plain pointer keeps the options trivially copyable, and therefore safe as temporaries in a co_await expression
    /// with g++ 12.
    fault_injector* injector = nullptr;

    COACCEL_DECL error_code check() const noexcept; ///< errc::invalid_option if an option is out of range.
};

} // namespace coaccel

#endif
