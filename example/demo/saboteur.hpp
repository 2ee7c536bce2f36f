#ifndef COACCEL_EXAMPLE_DEMO_SABOTEUR_HPP
#define COACCEL_EXAMPLE_DEMO_SABOTEUR_HPP

#include "tally.hpp"

#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/awaitable.hpp>

namespace demo {

/// Kills the worker process of the first device at intervals, with everything that it computes.
boost::asio::awaitable<void> sabotage(coaccel::telemetry::registry metrics, tally& counts);

} // namespace demo

#endif
