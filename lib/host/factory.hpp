#ifndef COACCEL_HOST_FACTORY_HPP
#define COACCEL_HOST_FACTORY_HPP

#include "context/context.hpp"

#include <coaccel/host/host_options.hpp>

namespace coaccel::host {

/// A factory of contexts on the CPU. All of them share one fault_injector.
COACCEL_DECL detail::context_factory make_factory(const host_options& options);

} // namespace coaccel::host

#endif
