#ifndef COACCEL_EXAMPLE_DEMO_SABOTEUR_HPP
#define COACCEL_EXAMPLE_DEMO_SABOTEUR_HPP

#include "tally.hpp"

#include <coaccel/device/device.hpp>

#include <boost/asio/awaitable.hpp>

namespace demo {

/// At intervals: on the CPU, kills the worker process of the device; on a GPU, starts a kernel that writes to an
/// invalid address.
boost::asio::awaitable<void> sabotage(coaccel::device gpu, tally& counts);

} // namespace demo

#endif
