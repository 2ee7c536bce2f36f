#ifndef COACCEL_DEVICE_BACKENDS_HPP
#define COACCEL_DEVICE_BACKENDS_HPP

#include "context/context.hpp"

#include <coaccel/device/device_options.hpp>

namespace coaccel::detail {

/// How the contexts of a device are made.
struct context_source {
    context_factory make;
    /// Whether making and ending a context must stay off the executor.
    bool blocks = true;
};

/// errc::backend_unavailable when this build or machine cannot do it.
result<context_source> find_backend(const device_options& options);

} // namespace coaccel::detail

#endif
