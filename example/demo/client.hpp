#ifndef COACCEL_EXAMPLE_DEMO_CLIENT_HPP
#define COACCEL_EXAMPLE_DEMO_CLIENT_HPP

#include "tally.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace demo {

/// Starts clients that request products one after another and check the results, until `counts.stopping`.
void start_clients(const boost::asio::any_io_executor& executor, int count, boost::asio::ip::tcp::endpoint server,
                   tally& counts);

} // namespace demo

#endif
