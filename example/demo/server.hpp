#ifndef COACCEL_EXAMPLE_DEMO_SERVER_HPP
#define COACCEL_EXAMPLE_DEMO_SERVER_HPP

#include "tally.hpp"

#include <coaccel/device/device.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace demo {

/// Accepts connections until the acceptor is closed; one coroutine serves each.
boost::asio::awaitable<void> serve(boost::asio::ip::tcp::acceptor& acceptor, coaccel::device gpu, tally& counts);

} // namespace demo

#endif
