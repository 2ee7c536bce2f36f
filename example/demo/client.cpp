#include "client.hpp"

#include "protocol.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <exception>
#include <random>
#include <vector>

namespace demo {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// A product to request and the expected answer.
class problem {
public:
    explicit problem(std::minstd_rand& random)
    {
        // Small integers: a float holds their sums of products exactly, in any order of addition.
        std::uniform_int_distribution<int> digit(-8, 8);
        for (auto* matrix : {&a_, &b_})
            for (std::size_t i = 0; i < elements; ++i)
                matrix->push_back(static_cast<float>(digit(random)));
        product_.resize(elements);
    }

    std::array<asio::const_buffer, 2> request() const { return {asio::buffer(a_), asio::buffer(b_)}; }

    asio::mutable_buffer product() { return asio::buffer(product_); }

    bool is_right() const
    {
        std::vector<float> expected(elements);
        for (std::size_t j = 0; j < side; ++j)
            for (std::size_t k = 0; k < side; ++k)
                for (std::size_t i = 0; i < side; ++i)
                    expected[i + j * side] += a_[i + k * side] * b_[k + j * side];
        return product_ == expected;
    }

private:
    std::vector<float> a_;
    std::vector<float> b_;
    std::vector<float> product_;
};

asio::awaitable<answer> ask(tcp::socket& socket, problem& p, tally& counts)
{
    ++counts.sent;
    const auto request = p.request();
    co_await asio::async_write(socket, request, asio::use_awaitable);
    answer what{};
    co_await asio::async_read(socket, asio::buffer(&what, sizeof what), asio::use_awaitable);
    if (what == answer::product)
        co_await asio::async_read(socket, p.product(), asio::use_awaitable);
    ++counts.answered;
    co_return what;
}

asio::awaitable<void> run_client(tcp::endpoint server, unsigned seed, tally& counts)
{
    std::minstd_rand random(seed);
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(server, asio::use_awaitable);
    socket.set_option(tcp::no_delay(true));
    while (!counts.stopping) {
        problem p(random);
        const auto begin = tally::clock::now();
        const answer what = co_await ask(socket, p, counts);
        if (what != answer::product) {
            ++counts.failed;
            continue;
        }
        counts.latencies.push_back(tally::clock::now() - begin);
        ++counts.products;
        counts.wrong += p.is_right() ? 0 : 1;
    }
}

} // namespace

void start_clients(const asio::any_io_executor& executor, int count, tcp::endpoint server, tally& counts)
{
    for (int i = 0; i < count; ++i) {
        ++counts.clients_active;
        asio::co_spawn(executor, run_client(server, static_cast<unsigned>(i) + 1, counts), [&](std::exception_ptr e) {
            --counts.clients_active;
            counts.clients_broken += e ? 1 : 0;
        });
    }
}

} // namespace demo
