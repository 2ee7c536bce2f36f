#ifndef COACCEL_HOST_HOST_OPTIONS_HPP
#define COACCEL_HOST_HOST_OPTIONS_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/host/fault_injector.hpp>

#include <cstdint>

namespace coaccel {

/// Where the host backend runs its ops.
enum class host_mode : std::uint8_t {
    /// On threads of its own, asynchronously.
    pool,
    /// In the device's turn, on the caller's executor, without any thread. For tests and tiny programs.
    in_turn,
};

/// How the CPU stands in for an accelerator.
struct host_options {
    host_mode mode = host_mode::pool; ///< Where ops run.
    /// Threads of the pool; 0: as many as the machine has cores.
    int threads = 0;
    /// The most bytes of buffers; 0: the memory of the machine, or what a control group allows.
    std::uint64_t memory_limit = 0;
    /// The most bytes of pinned buffers; 0: no limit of its own.
    std::uint64_t pinned_limit = 0;
    /// Faults to inject, counted over the life of the device.
    host_faults faults{};
    /// To inject faults while the program runs; instead of `faults`, when set. Must outlive the device. With
    /// isolation::worker it plays the same faults: it counts the ops in this process, and its delay and limit of memory
    /// go to every worker.
    /// A plain pointer keeps the options trivially copyable, and so safe as temporaries in a co_await
    /// expression with g++ 12.
    fault_injector* injector = nullptr;

    COACCEL_DECL error_code check() const noexcept; ///< errc::invalid_option for the first that is out of range.
};

} // namespace coaccel

#endif
