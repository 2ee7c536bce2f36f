#ifndef COACCEL_EXAMPLE_DEMO_SERVER_HPP
#define COACCEL_EXAMPLE_DEMO_SERVER_HPP

#include <coaccel/device/plan.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace demo {

/// The product of two matrices.
coaccel::result<coaccel::plan_description> make_product();

/// Accepts connections until the acceptor is closed; one coroutine serves each, with runs of the plan.
boost::asio::awaitable<void> serve(boost::asio::ip::tcp::acceptor& acceptor, coaccel::plan multiply);

} // namespace demo

#endif
