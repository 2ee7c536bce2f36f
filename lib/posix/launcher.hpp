#ifndef COACCEL_POSIX_LAUNCHER_HPP
#define COACCEL_POSIX_LAUNCHER_HPP

#include "posix/spawn.hpp"

#include <coaccel/core/config.hpp>

#include <memory>
#include <thread>

namespace coaccel::detail {

/// The thread that starts all processes. The kernel kills a process when the thread that started it ends, so this
/// thread must outlive all of them: each process holds a reference to its launcher.
///
/// Thread safety: any thread. Does nothing in a forked child.
class COACCEL_DECL launcher {
public:
    /// Null if no thread can be started.
    static std::shared_ptr<launcher> shared();

    launcher(const launcher&) = delete;
    launcher& operator=(const launcher&) = delete;
    ~launcher();

    /// Blocks until the program runs or has failed to start. A child that does not execute it within the limit of the
    /// plan is killed, so that it does not keep all others from being started.
    spawned start(const spawn_plan& plan);

private:
    class state;

    explicit launcher(std::shared_ptr<state> s);

    std::shared_ptr<state> state_;
    std::thread thread_;
};

} // namespace coaccel::detail

#endif
