#ifndef COACCEL_EXAMPLE_DEMO_SABOTEUR_HPP
#define COACCEL_EXAMPLE_DEMO_SABOTEUR_HPP

#include "tally.hpp"

#include <coaccel/device/device.hpp>

#include <boost/asio/awaitable.hpp>

namespace demo {

/// Every now and then: on the CPU, kills the device's worker process; on a GPU, has a kernel write to an address that
/// is none.
boost::asio::awaitable<void> sabotage(coaccel::device gpu, tally& counts);

} // namespace demo

#endif
