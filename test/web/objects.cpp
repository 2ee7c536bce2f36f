// Writes the metrics of one of each object that reports to a registry, after it has done something. Their names have
// characters that the formats must escape. With the argument `openmetrics` in that format.
#include <coaccel/coaccel.hpp>
#include <coaccel/serve/fair_share.hpp>
#include <coaccel/serve/function_batcher.hpp>
#include <coaccel/serve/hot_swap.hpp>
#include <coaccel/serve/rate_limiter.hpp>
#include <coaccel/serve/replica_pool.hpp>
#include <coaccel/telemetry/exposition.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace serve = coaccel::serve;
namespace telemetry = coaccel::telemetry;
using namespace std::chrono_literals;

namespace {

using vector = std::array<float, 4>;
using pool = serve::replica_pool<ca::plan>;
using doubles = serve::function_batcher<int, int>;
using model = serve::hot_swap<doubles>;

const std::string odd_name = "a \"name\"\\with {odd},\ncharacters = 1 \xc3\xa9";

template <class... T>
void keep_each(std::vector<telemetry::registration>& kept, T... registrations)
{
    (kept.push_back(std::move(registrations)), ...);
}

ca::result<ca::plan_description> make_plan()
{
    ca::plan_builder b(odd_name);
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    b.add(ca::memory::copy<float>{.src = x, .dst = y});
    return b.finish();
}

asio::awaitable<ca::result<void>> use_pool(const telemetry::registry& metrics,
                                           std::vector<telemetry::registration>& kept)
{
    const auto executor = co_await asio::this_coro::executor;
    BOOST_OUTCOME_CO_TRY(const auto described, make_plan());
    std::vector<serve::replica<ca::plan>> replicas;
    const std::array<std::string, 2> names{"gpu0", "gpu1"};
    for (const std::string& name : names) {
        ca::device_options options;
        options.kind = ca::device_kind::host;
        BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, options));
        BOOST_OUTCOME_CO_TRY(auto loaded, co_await gpu.async_load(described));
        BOOST_OUTCOME_CO_TRY(auto added, metrics.add(gpu, name));
        kept.push_back(std::move(added));
        replicas.push_back({loaded, gpu});
    }
    serve::replica_pool_options options;
    options.name = odd_name;
    BOOST_OUTCOME_CO_TRY(const auto copies, pool::create(executor, std::move(replicas), options));
    kept.push_back(copies.report_to(metrics));
    for (int i = 0; i < 10; ++i) {
        const vector x{1, 2, 3, 4};
        vector y{};
        BOOST_OUTCOME_CO_TRY(const auto lease, copies.pick());
        BOOST_OUTCOME_CO_TRYV(co_await lease->async_run(ca::from(x), ca::to(y)));
    }
    BOOST_OUTCOME_CO_TRYV(co_await copies.async_drain(1));
    co_return ca::success();
}

// Fails for a negative number; its supervisor starts it again.
class positive_only {
public:
    asio::awaitable<ca::error_code> operator()(int n) const
    {
        co_return n < 0 ? make_error_code(ca::errc::invalid_argument) : ca::error_code();
    }
};

struct actors {
    std::shared_ptr<ca::actor<int>> worker;
    std::shared_ptr<ca::supervisor> boss;
};

asio::awaitable<ca::result<actors>> use_actor(const telemetry::registry& metrics,
                                              std::vector<telemetry::registration>& kept)
{
    const auto executor = co_await asio::this_coro::executor;
    auto make = [] { return positive_only(); };
    BOOST_OUTCOME_CO_TRY(auto worker, ca::actor<int>::create(executor, 4, make));
    const ca::restart_policy policy{.initial_backoff = 0ms};
    BOOST_OUTCOME_CO_TRY(auto boss, ca::supervisor::create(executor, policy, {worker}));
    boss->async_run(asio::detached);
    BOOST_OUTCOME_CO_TRY(auto of_worker, metrics.add(worker, odd_name));
    BOOST_OUTCOME_CO_TRY(auto of_boss, metrics.add(boss, odd_name));
    keep_each(kept, std::move(of_worker), std::move(of_boss));
    const auto address = worker->ref();
    const std::array<int, 3> numbers{1, -1, 2};
    for (const int n : numbers) {
        BOOST_OUTCOME_CO_TRYV(co_await address.async_send(n));
    }
    while (worker->stats().messages < 3)
        co_await asio::post(executor, asio::use_awaitable);
    co_return actors{worker, boss};
}

asio::awaitable<ca::result<std::vector<int>>> twice(std::span<const int> numbers)
{
    std::vector<int> results;
    for (const int n : numbers)
        results.push_back(2 * n);
    co_return results;
}

asio::awaitable<ca::result<doubles>> load_doubles(asio::any_io_executor executor)
{
    serve::batcher_options options;
    options.name = odd_name;
    co_return doubles::create(executor, options, twice);
}

asio::awaitable<ca::result<model>> use_model(const telemetry::registry& metrics,
                                             std::vector<telemetry::registration>& kept)
{
    const auto executor = co_await asio::this_coro::executor;
    serve::hot_swap_options options;
    options.name = odd_name;
    BOOST_OUTCOME_CO_TRY(auto swap, model::create(executor, options));
    serve::version_source<doubles> first;
    first.name = odd_name;
    first.load = [executor] { return load_doubles(executor); };
    BOOST_OUTCOME_CO_TRYV(co_await swap.async_load(std::move(first)));
    kept.push_back(swap.report_to(metrics));
    BOOST_OUTCOME_CO_TRY(const auto version, swap.pick());
    kept.push_back(version->report_to(metrics));
    BOOST_OUTCOME_CO_TRYV(co_await version->async_call(3));
    BOOST_OUTCOME_CO_TRYV(co_await swap.async_call(4));
    co_return swap;
}

asio::awaitable<ca::result<void>> use_limits(const telemetry::registry& metrics,
                                             std::vector<telemetry::registration>& kept)
{
    const auto executor = co_await asio::this_coro::executor;
    serve::fair_share_options shares;
    shares.name = odd_name;
    shares.tenants[odd_name].weight = 2;
    BOOST_OUTCOME_CO_TRY(const auto share, serve::fair_share::create(executor, shares));
    serve::rate_limiter_options rates;
    rates.name = odd_name;
    rates.tenants[odd_name] = {.rate = 1, .period = 1min, .burst = 1};
    BOOST_OUTCOME_CO_TRY(const auto limiter, serve::rate_limiter::create(executor, rates));
    keep_each(kept, share.report_to(metrics), limiter.report_to(metrics));
    for (int i = 0; i < 2; ++i) {
        BOOST_OUTCOME_CO_TRY(auto turn, co_await share.async_enter(odd_name));
        turn.finish(1ms);
        BOOST_OUTCOME_CO_TRYV(limiter.try_acquire(odd_name));
    }
    co_return ca::success();
}

asio::awaitable<ca::result<void>> run(telemetry::text_format format)
{
    const auto executor = co_await asio::this_coro::executor;
    const telemetry::registry metrics(executor);
    std::vector<telemetry::registration> kept;
    BOOST_OUTCOME_CO_TRYV(co_await use_pool(metrics, kept));
    BOOST_OUTCOME_CO_TRY(const auto actors, co_await use_actor(metrics, kept));
    BOOST_OUTCOME_CO_TRY(const auto swap, co_await use_model(metrics, kept));
    BOOST_OUTCOME_CO_TRYV(co_await use_limits(metrics, kept));
    BOOST_OUTCOME_CO_TRY(auto box, ca::mailbox<int>::create(executor, 8));
    kept.push_back(metrics.add(box.ref(), "inbox of " + odd_name)); // odd_name is that of the mailbox of the actor
    BOOST_OUTCOME_CO_TRYV(co_await box.ref().async_send(1));
    const auto trace = ca::trace_buffer::create(64);
    trace->add({});
    BOOST_OUTCOME_CO_TRY(auto of_trace, metrics.add(trace, odd_name));
    kept.push_back(std::move(of_trace));

    BOOST_OUTCOME_CO_TRY(const auto all, co_await metrics.async_collect());
    std::cout << telemetry::to_text(all, format);
    BOOST_OUTCOME_CO_TRYV(co_await actors.boss->async_stop());
    BOOST_OUTCOME_CO_TRYV(co_await swap.async_shutdown(ca::shutdown::drain));
    co_return ca::success();
}

} // namespace

int main(int argc, char** argv)
{
    const bool other = argc > 1 && std::string(argv[1]) == "openmetrics";
    asio::io_context io;
    int status = 1;
    asio::co_spawn(io, run(other ? telemetry::text_format::openmetrics : telemetry::text_format::prometheus),
                   [&status](std::exception_ptr e, ca::result<void> r) {
                       status = !e && r ? 0 : 1;
                       if (!e && !r)
                           std::cerr << r.error().message() << '\n';
                   });
    io.run();
    return status;
}
