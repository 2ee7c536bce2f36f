#ifndef COACCEL_WORKER_WORKER_SOURCE_HPP
#define COACCEL_WORKER_WORKER_SOURCE_HPP

#include "context/context.hpp"
#include "core/environment.hpp"
#include "worker/wire.hpp"

#include <coaccel/worker/worker_options.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <optional>
#include <string>

namespace coaccel::worker {

/// What a device has its workers be.
struct source_options {
    worker_options how;
    /// What the worker is told; the rest of it is filled in.
    worker_setup setup;
    int standby = 0;
    std::optional<std::string> plugin{};
    /// That of the process, as it is now.
    std::shared_ptr<const detail::environment> environment{};
    /// Plays faults on the host backend; null: those of the host options.
    fault_injector* faults = nullptr;
    int copy_threads = 4;
};

struct worker_source {
    detail::context_factory make;
    /// Ends a worker that is being waited for, and fails whoever asks for another. From any thread.
    std::function<void()> give_up;
    /// Whether one of those that are kept ready is there.
    std::function<bool()> has_standby;
    /// Ends those that are kept ready, and lets go of the staging memory, until the next context is made. Blocks.
    std::function<void()> rest;
};

/// Makes contexts in worker processes, with some kept ready.
COACCEL_DECL worker_source make_source(const source_options& options, const boost::asio::any_io_executor& executor);

} // namespace coaccel::worker

#endif
