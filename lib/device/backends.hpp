#ifndef COACCEL_DEVICE_BACKENDS_HPP
#define COACCEL_DEVICE_BACKENDS_HPP

#include "context/context.hpp"

#include <coaccel/device/device_options.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <functional>

namespace coaccel::detail {

/// How the contexts of a device are made.
struct context_source {
    context_factory make;
    /// Whether making and ending a context must stay off the executor.
    bool blocks = true;
    /// Nobody waits any more for a context that is being made, so that making it may fail. From any thread. Empty where
    /// making one is quick.
    std::function<void()> give_up{};
    /// Whether another context stands ready, or will soon. Empty where there is no such thing.
    std::function<bool()> has_standby{};
    /// Lets go of what stands ready, blocking; a context can still be made later. Empty where nothing does.
    std::function<void()> rest{};
    /// Each context is in a process of its own, so that the death of one says nothing of the next.
    bool isolated = false;
};

/// Contexts in this process. errc::backend_unavailable when this build cannot do it.
COACCEL_DECL result<context_source> find_backend(const device_options& options);

/// As the options say: in this process, or in workers that wake the executor.
result<context_source> find_source(const device_options& options, const boost::asio::any_io_executor& executor);

} // namespace coaccel::detail

#endif
