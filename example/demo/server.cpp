#include "server.hpp"

#include "protocol.hpp"

#include <coaccel/ops/blas.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <span>
#include <utility>
#include <vector>

namespace demo {

namespace ca = coaccel;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

class session {
public:
    session(tcp::socket socket, ca::device gpu, tally& counts)
        : socket_(std::move(socket)), gpu_(std::move(gpu)), counts_(counts), host_a_(elements(max_n)),
          host_b_(elements(max_n)), host_c_(elements(max_n))
    {}

    // Ends with the exception of the closed connection.
    asio::awaitable<void> run()
    {
        for (;;) {
            size_type n = 0;
            co_await asio::async_read(socket_, asio::buffer(&n, sizeof n), asio::use_awaitable);
            if (n == 0 || n > max_n)
                co_return;
            const std::array<asio::mutable_buffer, 2> operands{bytes(host_a_, n), bytes(host_b_, n)};
            co_await asio::async_read(socket_, operands, asio::use_awaitable);

            const auto done = co_await multiply(n);
            const answer what = done ? answer::product : blame(done.error());
            const std::array<asio::const_buffer, 2> reply{asio::buffer(&what, sizeof what),
                                                          done ? bytes(host_c_, n) : asio::mutable_buffer()};
            co_await asio::async_write(socket_, reply, asio::use_awaitable);
        }
    }

private:
    static asio::mutable_buffer bytes(std::vector<float>& matrix, size_type n)
    {
        return asio::buffer(matrix.data(), elements(n) * sizeof(float));
    }

    static std::span<float> part(std::vector<float>& matrix, size_type n)
    {
        return std::span(matrix).first(elements(n));
    }

    asio::awaitable<ca::result<void>> multiply(size_type n)
    {
        const std::size_t size = elements(n);
        if (!c_) {
            BOOST_OUTCOME_CO_TRY(a_, co_await gpu_.async_alloc<float>(elements(max_n)));
            BOOST_OUTCOME_CO_TRY(b_, co_await gpu_.async_alloc<float>(elements(max_n)));
            BOOST_OUTCOME_CO_TRY(c_, co_await gpu_.async_alloc<float>(elements(max_n)));
        }
        BOOST_OUTCOME_CO_TRYV(co_await gpu_.async_write(a_.subspan(0, size), part(host_a_, n)));
        BOOST_OUTCOME_CO_TRYV(co_await gpu_.async_write(b_.subspan(0, size), part(host_b_, n)));
        BOOST_OUTCOME_CO_TRYV(
            co_await gpu_.async_exec(ca::blas::gemm<float>{.a = a_, .b = b_, .c = c_, .m = n, .n = n, .k = n}));
        BOOST_OUTCOME_CO_TRYV(co_await gpu_.async_read(c_.subspan(0, size), part(host_c_, n)));
        co_return ca::success();
    }

    answer blame(const ca::error_code& ec)
    {
        // The buffers were lost with their context; the next request allocates new ones.
        a_.reset();
        b_.reset();
        c_.reset();
        if (ec == ca::errc::stale_ref)
            ++counts_.stale_ref;
        else if (ca::is_context_lost(ec))
            ++counts_.context_lost;
        else {
            ++counts_.other_errors;
            return answer::refused;
        }
        return answer::again;
    }

    tcp::socket socket_;
    ca::device gpu_;
    tally& counts_;
    std::vector<float> host_a_;
    std::vector<float> host_b_;
    std::vector<float> host_c_;
    ca::buffer<float> a_;
    ca::buffer<float> b_;
    ca::buffer<float> c_;
};

asio::awaitable<void> run_session(tcp::socket socket, ca::device gpu, tally& counts)
{
    session s(std::move(socket), std::move(gpu), counts);
    co_await s.run();
}

} // namespace

asio::awaitable<void> serve(tcp::acceptor& acceptor, ca::device gpu, tally& counts)
{
    for (;;) {
        auto socket = co_await acceptor.async_accept(asio::use_awaitable);
        socket.set_option(tcp::no_delay(true));
        asio::co_spawn(acceptor.get_executor(), run_session(std::move(socket), gpu, counts), asio::detached);
    }
}

} // namespace demo
