#ifndef COACCEL_BENCH_SERVER_ECHO_SERVER_HPP
#define COACCEL_BENCH_SERVER_ECHO_SERVER_HPP

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>

namespace coaccel::bench {

/// The smallest server with Beast: each reply has the body of the request.
class echo_server {
public:
    explicit echo_server(boost::asio::io_context& io);

    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

private:
    void accept();

    boost::asio::ip::tcp::acceptor acceptor_;
};

} // namespace coaccel::bench

#endif
