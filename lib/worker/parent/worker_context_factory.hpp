#ifndef COACCEL_WORKER_PARENT_WORKER_CONTEXT_FACTORY_HPP
#define COACCEL_WORKER_PARENT_WORKER_CONTEXT_FACTORY_HPP

#include "context/context.hpp"
#include "posix/environment.hpp"
#include "worker/protocol/wire.hpp"

#include <coaccel/worker/worker_options.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <optional>
#include <string>

namespace coaccel::worker {

/// Options of a device's workers.
struct source_options {
    worker_options how;
    /// The setup that is sent to the worker; the factory fills in the remaining members.
    worker_setup setup;
    int standby = 0;
    std::optional<std::string> plugin{};
    /// The environment of this process at the time the device was made.
    std::shared_ptr<const detail::environment> environment{};
    /// Injects faults on the host backend; null: the faults in the host options.
    fault_injector* faults = nullptr;
    int copy_threads = 4;
};

struct worker_context_factory {
    detail::context_factory make;
    /// Ends a worker that is being waited for; further requests for a context fail. From any thread.
    std::function<void()> give_up;
    /// Whether a standby is available.
    std::function<bool()> has_standby;
    /// Ends the standbys and frees the staging memory until the next context is made. Blocks.
    std::function<void()> rest;
    /// Makes a context from a standby before it is needed. Blocks until the standby is ready. It counts as a standby
    /// until the next call, which starts another one in its place.
    detail::context_factory make_standby;
};

/// Makes contexts in worker processes, some of which are kept ready.
COACCEL_DECL worker_context_factory make_source(const source_options& options,
                                                const boost::asio::any_io_executor& executor);

} // namespace coaccel::worker

#endif
