#ifndef COACCEL_DEVICE_BACKENDS_HPP
#define COACCEL_DEVICE_BACKENDS_HPP

#include "context/context.hpp"

#include <coaccel/device/device_options.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <functional>

namespace coaccel::detail {

/// How the contexts of a device are created.
struct context_source {
    context_factory make;
    /// Whether creating and destroying a context must stay off the executor.
    bool blocks = true;
    /// The context that is being created is no longer needed, so its creation may fail early. Called from any thread.
    /// Empty if creation is fast.
    std::function<void()> give_up{};
    /// Whether another context is ready or will be soon. Empty if there are no standbys.
    std::function<bool()> has_standby{};
    /// Releases the standbys; blocks. A context can still be created later. Empty if there are no standbys.
    std::function<void()> rest{};
    /// Makes a context from a standby, which takes over when the current one is lost. Empty if there are no standbys.
    context_factory make_standby{};
    /// Each context has its own process, so the death of one says nothing about the next.
    bool isolated = false;
};

/// Contexts in this process. errc::backend_unavailable if this build does not contain the backend.
COACCEL_DECL result<context_source> find_backend(const device_options& options);

/// Contexts as the options specify: in this process, or in workers that wake the executor.
result<context_source> find_source(const device_options& options, const boost::asio::any_io_executor& executor);

} // namespace coaccel::detail

#endif
