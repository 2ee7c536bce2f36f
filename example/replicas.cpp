// A plan on two devices: each request goes to the one that has less to do, and to the other one while it is repaired.
#include <coaccel/coaccel.hpp>
#include <coaccel/serve/replica_pool.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <array>
#include <exception>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace serve = coaccel::serve;

namespace {

using vector = std::array<float, 4>;

ca::result<ca::plan_description> make_plan()
{
    ca::plan_builder b("plus_one");
    const auto x = b.input<float>(4);
    const auto one = b.constant<float>(vector{1, 1, 1, 1});
    const auto y = b.output<float>(4);
    b.add(ca::memory::copy<float>{.src = x, .dst = y});
    b.add(ca::blas::axpy<float>{.x = one, .y = y, .n = 4, .alpha = 1});
    return b.finish();
}

asio::awaitable<ca::result<void>> run()
{
    const auto executor = co_await asio::this_coro::executor;
    BOOST_OUTCOME_CO_TRY(auto described, make_plan());
    //[replicas_pool
    std::vector<serve::replica<ca::plan>> replicas;
    for (int ordinal = 0; ordinal < 2; ++ordinal) {
        ca::device_options options;
        options.kind = ca::device_kind::host; // on a server with two GPUs: options.ordinal = ordinal
        BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, options));
        BOOST_OUTCOME_CO_TRY(auto loaded, co_await gpu.async_load(described));
        replicas.push_back({loaded, gpu});
    }
    BOOST_OUTCOME_CO_TRY(auto pool, serve::replica_pool<ca::plan>::create(executor, std::move(replicas)));
    //]
    for (float n = 0; n < 10; ++n) {
        const vector x{n, n, n, n};
        vector y{};
        //[replicas_request
        BOOST_OUTCOME_CO_TRY(const auto replica, pool.pick()); // counts as a request on it until it is destroyed
        BOOST_OUTCOME_CO_TRYV(co_await replica->async_run(ca::from(x), ca::to(y)));
        //]
        if (y[0] != n + 1)
            co_return ca::errc::backend_error;
    }
    BOOST_OUTCOME_CO_TRYV(co_await pool.async_drain(0)); // no further requests for the first one
    const auto stats = pool.stats();
    std::cout << stats[0].picked << " and " << stats[1].picked << " requests\n";
    co_return ca::success();
}

} // namespace

int main()
{
    asio::io_context io;
    int status = 1;
    asio::co_spawn(io, run(), [&status](std::exception_ptr e, ca::result<void> r) {
        status = !e && r ? 0 : 1;
        if (!e && !r)
            std::cerr << r.error().message() << '\n';
    });
    io.run();
    return status;
}
