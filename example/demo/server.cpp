#include "server.hpp"

#include "protocol.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <utility>
#include <vector>

namespace demo {

namespace ca = coaccel;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

class session {
public:
    session(tcp::socket socket, ca::plan multiply)
        : socket_(std::move(socket)), multiply_(std::move(multiply)), a_(elements), b_(elements), c_(elements)
    {}

    // Ends with the exception of the closed connection.
    asio::awaitable<void> run()
    {
        for (;;) {
            const std::array<asio::mutable_buffer, 2> operands{asio::buffer(a_), asio::buffer(b_)};
            co_await asio::async_read(socket_, operands, asio::use_awaitable);

            // If the device loses its context meanwhile, it repeats the run in the next one. Nothing of it is seen
            // here.
            const auto done = co_await multiply_.async_run(ca::from(a_), ca::from(b_), ca::to(c_));
            const answer what = done ? answer::product : answer::failed;
            const std::array<asio::const_buffer, 2> reply{asio::buffer(&what, sizeof what),
                                                          done ? asio::buffer(c_) : asio::mutable_buffer()};
            co_await asio::async_write(socket_, reply, asio::use_awaitable);
        }
    }

private:
    tcp::socket socket_;
    ca::plan multiply_;
    std::vector<float> a_;
    std::vector<float> b_;
    std::vector<float> c_;
};

asio::awaitable<void> run_session(tcp::socket socket, ca::plan multiply)
{
    session s(std::move(socket), std::move(multiply));
    co_await s.run();
}

} // namespace

ca::result<ca::plan_description> make_product()
{
    ca::plan_builder b("product");
    const auto x = b.input<float>(elements, "a");
    const auto y = b.input<float>(elements, "b");
    const auto z = b.output<float>(elements, "c");
    b.add(ca::blas::gemm<float>{.a = x, .b = y, .c = z, .m = side, .n = side, .k = side});
    return b.finish();
}

asio::awaitable<void> serve(tcp::acceptor& acceptor, ca::plan multiply)
{
    for (;;) {
        auto socket = co_await acceptor.async_accept(asio::use_awaitable);
        socket.set_option(tcp::no_delay(true));
        asio::co_spawn(acceptor.get_executor(), run_session(std::move(socket), multiply), asio::detached);
    }
}

} // namespace demo
