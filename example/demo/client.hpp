#ifndef COACCEL_EXAMPLE_DEMO_CLIENT_HPP
#define COACCEL_EXAMPLE_DEMO_CLIENT_HPP

#include "questions.hpp"
#include "tally.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <vector>

namespace demo {

/// Starts clients that ask one question after another over HTTP and check the answers, until `counts.stopping`.
void start_clients(const boost::asio::any_io_executor& executor, int count, boost::asio::ip::tcp::endpoint server,
                   const std::vector<question>& questions, tally& counts);

} // namespace demo

#endif
