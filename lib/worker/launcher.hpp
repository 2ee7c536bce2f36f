#ifndef COACCEL_WORKER_LAUNCHER_HPP
#define COACCEL_WORKER_LAUNCHER_HPP

#include "worker/spawn.hpp"

#include <coaccel/core/config.hpp>

#include <memory>
#include <thread>

namespace coaccel::worker {

/// The thread that starts all processes. The kernel kills a process when the thread that started it ends, so this one
/// lives as long as any of them: each keeps the launcher it comes from.
///
/// Thread safety: any thread. Does nothing in a forked child.
class COACCEL_DECL launcher {
public:
    /// Null when there can be no thread.
    static std::shared_ptr<launcher> shared();

    launcher(const launcher&) = delete;
    launcher& operator=(const launcher&) = delete;
    ~launcher();

    /// Blocks until the program runs, or cannot.
    spawned start(const spawn_plan& plan);

private:
    class state;

    explicit launcher(std::shared_ptr<state> s);

    std::shared_ptr<state> state_;
    std::thread thread_;
};

} // namespace coaccel::worker

#endif
