#include "client/load_test.hpp"

#include "client/load_budget.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace coaccel::client {
namespace {

using clock = std::chrono::steady_clock;

constexpr auto pause_after_failure = std::chrono::milliseconds(50);

/// Counters that the thread of the progress line reads while others run.
struct shared_counters {
    std::atomic<std::uint64_t> answered{0};
    std::atomic<std::uint64_t> failed{0};
};

/// The connections of one thread.
class load_shard {
public:
    load_shard(const load_options& options, load_budget& budget, shared_counters& counters)
        : options_(options), budget_(budget), counters_(counters)
    {}

    void run(int connections)
    {
        for (int i = 0; i < connections; ++i)
            asio::co_spawn(io_, run_connection(), asio::detached);
        io_.run();
    }

    load_report report{};

private:
    asio::awaitable<void> run_connection()
    {
        const auto ex = co_await asio::this_coro::executor;
        http_session session(ex, options_.where, options_.key, options_.timeout);
        asio::steady_timer pause(ex);
        while (budget_.take(clock::now())) {
            const auto begin = clock::now();
            const auto reply = co_await session.exchange(options_.request);
            if (reply && reply.value().status == 200) {
                report.latencies.add(clock::now() - begin);
                counters_.answered.fetch_add(1, std::memory_order_relaxed);
                continue;
            }
            note_failure(reply);
            if (reply)
                continue;
            pause.expires_after(pause_after_failure);
            auto waiting = pause.async_wait(asio::as_tuple(asio::use_awaitable));
            co_await std::move(waiting);
        }
        report.connections += session.connections();
    }

    void note_failure(const result<http_reply>& reply)
    {
        counters_.failed.fetch_add(1, std::memory_order_relaxed);
        if (!reply) {
            ++report.failures[failure_kind(reply.error())];
            return;
        }
        const auto kind = "status " + std::to_string(reply.value().status);
        ++report.failures[kind];
        report.examples.try_emplace(kind, reply.value().body.substr(0, 300));
    }

    const load_options& options_;
    load_budget& budget_;
    shared_counters& counters_;
    asio::io_context io_{1};
};

/// Prints progress and waits for the signal, in the thread that called run_load, until all shards have ended.
class load_supervisor {
public:
    load_supervisor(const load_options& options, load_budget& budget, const shared_counters& counters,
                    clock::time_point begin, int shards)
        : options_(options), budget_(budget), counters_(counters), begin_(begin), next_(begin), running_(shards)
    {
        signals_.async_wait([this](error_code ec, int) {
            if (ec)
                return;
            budget_.stop();
            // The next one ends the program at once.
            signals_.clear();
        });
        tick();
    }

    /// Any thread may call it.
    void shard_ended()
    {
        if (running_.fetch_sub(1) == 1)
            asio::post(io_, [this] {
                signals_.cancel();
                timer_.cancel();
            });
    }

    void run() { io_.run(); }

private:
    void tick()
    {
        next_ += std::chrono::seconds(1);
        timer_.expires_at(next_);
        timer_.async_wait([this](error_code ec) {
            // A timer that is due already cannot be cancelled.
            if (ec || running_.load() == 0)
                return;
            if (options_.on_progress)
                options_.on_progress({clock::now() - begin_, counters_.answered.load(), counters_.failed.load()});
            tick();
        });
    }

    const load_options& options_;
    load_budget& budget_;
    const shared_counters& counters_;
    clock::time_point begin_;
    clock::time_point next_;
    std::atomic<int> running_;
    asio::io_context io_{1};
    asio::signal_set signals_{io_, SIGINT};
    asio::steady_timer timer_{io_};
};

} // namespace

std::uint64_t load_report::failed() const noexcept
{
    std::uint64_t all = 0;
    for (const auto& [kind, n] : failures)
        all += n;
    return all;
}

double load_report::rate() const noexcept
{
    const auto seconds = std::chrono::duration<double>(elapsed).count();
    return seconds > 0 ? static_cast<double>(latencies.count()) / seconds : 0;
}

load_report run_load(const load_options& options)
{
    const auto begin = clock::now();
    load_budget budget(options.count, options.duration ? std::optional(begin + *options.duration) : std::nullopt);
    shared_counters counters;
    const int count = std::clamp(options.threads, 1, std::max(options.connections, 1));
    load_supervisor supervisor(options, budget, counters, begin, count);
    std::vector<std::unique_ptr<load_shard>> shards;
    for (int i = 0; i < count; ++i)
        shards.push_back(std::make_unique<load_shard>(options, budget, counters));
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
        const int connections = options.connections / count + (i < options.connections % count ? 1 : 0);
        threads.emplace_back([&supervisor, shard = shards[static_cast<std::size_t>(i)].get(), connections] {
            shard->run(connections);
            supervisor.shard_ended();
        });
    }
    supervisor.run();
    threads.clear();
    load_report all;
    all.elapsed = clock::now() - begin;
    all.interrupted = budget.stopped();
    for (const auto& shard : shards) {
        all.latencies.add(shard->report.latencies);
        all.connections += shard->report.connections;
        for (const auto& [kind, n] : shard->report.failures)
            all.failures[kind] += n;
        all.examples.insert(shard->report.examples.begin(), shard->report.examples.end());
    }
    return all;
}

} // namespace coaccel::client
