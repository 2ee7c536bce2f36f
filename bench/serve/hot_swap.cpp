#include "device/devices.hpp"
#include "row.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>
#include <coaccel/serve/hot_swap.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace coaccel::bench {
namespace {

using serve::dynamic_batcher;
using swap_clock = std::chrono::steady_clock;
using batcher_swap = serve::hot_swap<dynamic_batcher>;

constexpr int swap_count = 100;
constexpr std::size_t swap_row_length = 16;

/// Copies its input.
result<serve::batch_model> copying_model()
{
    std::vector<serve::batch_plan> plans;
    for (const std::uint32_t rows : {1u, 64u}) {
        plan_builder b("copy" + std::to_string(rows));
        const auto x = b.input<float>(rows * swap_row_length);
        const auto y = b.output<float>(rows * swap_row_length);
        b.add(memory::copy<float>{x, y});
        BOOST_OUTCOME_TRY(auto described, b.finish());
        plans.push_back({rows, std::move(described)});
    }
    return serve::batch_model::create(std::move(plans));
}

asio::awaitable<result<dynamic_batcher>> load_batcher(asio::any_io_executor ex, device gpu)
{
    BOOST_OUTCOME_CO_TRY(auto model, copying_model());
    const std::vector devices{gpu};
    const std::vector models{model};
    const serve::batcher_options options;
    BOOST_OUTCOME_CO_TRY(auto made, co_await dynamic_batcher::async_create(ex, devices, models, options));
    co_return made;
}

asio::awaitable<result<void>> one_row(const dynamic_batcher& b)
{
    std::array<float, swap_row_length> x{};
    std::array<float, swap_row_length> y{};
    BOOST_OUTCOME_CO_TRYV(co_await b.async_run(from(x), to(y)));
    co_return outcome::success();
}

/// What became of all requests.
struct swap_load {
    bool stop = false;
    std::uint64_t requests = 0;
    /// Ends when this many requests have been started; 0: when `stop` is set.
    std::uint64_t most = 0;
    std::uint64_t failed = 0;
    std::uint64_t twice = 0;
    double longest = 0;
};

/// One request after another.
class swap_client {
public:
    swap_client(batcher_swap s, swap_load& l) : swap_(std::move(s)), load_(&l) {}

    void next()
    {
        if (load_->stop || (load_->most != 0 && load_->requests >= load_->most))
            return;
        ++load_->requests;
        waits_ = true;
        x_[0] += 1;
        began_ = swap_clock::now();
        swap_.async_run(from(x_), to(y_), [this](error_code ec) { answered(ec); });
    }

    bool waits() const noexcept { return waits_; }

private:
    void answered(const error_code& ec)
    {
        if (!std::exchange(waits_, false)) {
            ++load_->twice;
            return;
        }
        if (ec || y_[0] != x_[0])
            ++load_->failed;
        load_->longest = std::max(load_->longest, std::chrono::duration<double>(swap_clock::now() - began_).count());
        next();
    }

    const batcher_swap swap_;
    swap_load* const load_;
    std::array<float, swap_row_length> x_{};
    std::array<float, swap_row_length> y_{};
    swap_clock::time_point began_{};
    bool waits_ = false;
};

asio::awaitable<void> swap_again_and_again(batcher_swap swap, serve::version_source<dynamic_batcher> source,
                                           swap_load* load)
{
    for (int i = 0; i < swap_count; ++i) {
        const auto done = co_await swap.async_load(source);
        if (!done) {
            std::fprintf(stderr, "bench: %s\n", done.error().message().c_str());
            std::exit(1);
        }
    }
    load->stop = true;
}

/// Runs all clients to their end; returns the number of those that were never answered.
std::uint64_t run_clients(asio::io_context& io, const batcher_swap& swap, swap_load& load)
{
    std::deque<swap_client> clients;
    for (int i = 0; i < 64; ++i)
        clients.emplace_back(swap, load).next();
    timed_run(io);
    return static_cast<std::uint64_t>(std::ranges::count_if(clients, &swap_client::waits));
}

} // namespace

void hot_swap_rows(rows& table)
{
    asio::io_context io(1);
    const auto gpu = make_device(io, host_mode::pool);
    serve::hot_swap_options options;
    options.confirm_after = {};
    auto made = batcher_swap::create(io.get_executor(), options);
    const batcher_swap swap = std::move(made).value();
    serve::version_source<dynamic_batcher> source;
    source.name = "copy";
    const asio::any_io_executor ex = io.get_executor();
    source.load = [ex, gpu] { return load_batcher(ex, gpu); };
    source.warm_up = one_row;
    await<std::uint64_t>(io, swap.async_load(source));

    swap_load with;
    asio::co_spawn(io, swap_again_and_again(swap, source, &with), asio::detached);
    const std::uint64_t unanswered = run_clients(io, swap, with);
    swap_load without;
    without.most = with.requests;
    run_clients(io, swap, without);

    const double lost = static_cast<double>(unanswered + with.failed + with.twice);
    const double all = static_cast<double>(with.requests);
    const auto versions = swap.stats();
    const bool counted = versions.switches == swap_count + 1 && versions.completed == with.requests + without.requests;
    table.push_back({"hot_swap_lost", lost / all, lost, all, "requests", "0", lost == 0 && counted});
    table.push_back(without_goal("hot_swap_latency", {with.longest * 1e3, without.longest * 1e3}, "ms, longest"));
}

} // namespace coaccel::bench
