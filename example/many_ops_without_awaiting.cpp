// Starts many ops before the first one has completed. The device runs ops on the same buffer in order.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <iostream>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

// Several ops on one buffer: only the last one is awaited.
asio::awaitable<ca::result<float>> in_order(ca::device gpu)
{
    //[in_order
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_alloc<float>(1000, ca::memory_init::zero));
    gpu.async_exec(ca::memory::fill<float>{.dst = x, .value = 1}, asio::detached);
    for (int i = 0; i < 10; ++i)
        gpu.async_exec(ca::blas::scal<float>{.x = x, .n = x.size(), .alpha = 2}, asio::detached);
    BOOST_OUTCOME_CO_TRY(const float sum, co_await gpu.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()}));
    //]
    co_return sum;
}

// Several ops with one completion. When one is refused, none is started.
asio::awaitable<ca::result<float>> as_one(ca::device gpu)
{
    //[seq
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_alloc<float>(1000));
    BOOST_OUTCOME_CO_TRY(const auto replies,
                         co_await gpu.async_exec(ca::seq(ca::memory::fill<float>{.dst = x, .value = 2},
                                                         ca::blas::scal<float>{.x = x, .n = x.size(), .alpha = 3},
                                                         ca::blas::asum<float>{.x = x, .n = x.size()})));
    const auto [sum] = replies;
    //]
    co_return sum;
}

// Independent ops: all are started, then all are awaited together.
asio::awaitable<ca::result<float>> all_at_once(ca::device gpu)
{
    std::vector<ca::buffer<float>> parts;
    for (int i = 0; i < 100; ++i) {
        BOOST_OUTCOME_CO_TRY(auto part, co_await gpu.async_alloc<float>(10, ca::memory_init::zero));
        parts.push_back(std::move(part));
    }

    //[parallel_group
    using fill = decltype(gpu.async_exec(ca::memory::fill<float>{}, asio::deferred));
    std::vector<fill> fills;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const ca::memory::fill<float> op{.dst = parts[i], .value = static_cast<float>(i)};
        fills.push_back(gpu.async_exec(op, asio::deferred));
    }
    auto group = asio::experimental::make_parallel_group(std::move(fills));
    auto [order, errors] = co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable_t<>());
    for (const ca::error_code& ec : errors)
        if (ec)
            co_return ec;
    //]

    float total = 0;
    for (const auto& part : parts) {
        BOOST_OUTCOME_CO_TRY(const float sum, co_await gpu.async_exec(ca::blas::asum<float>{.x = part, .n = 10}));
        total += sum;
    }
    co_return total;
}

asio::awaitable<ca::result<bool>> run()
{
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));

    BOOST_OUTCOME_CO_TRY(const float doubled, co_await in_order(gpu));
    BOOST_OUTCOME_CO_TRY(const float tripled, co_await as_one(gpu));
    BOOST_OUTCOME_CO_TRY(const float counted, co_await all_at_once(gpu));
    std::cout << "ten doublings of a thousand ones: " << doubled << '\n'
              << "a thousand twos, tripled: " << tripled << '\n'
              << "ten times the numbers below a hundred: " << counted << '\n';
    co_return doubled == 1024000 && tripled == 6000 && counted == 49500;
}

} // namespace

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
