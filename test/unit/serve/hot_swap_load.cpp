#include "support/sanitized.hpp"

#include <coaccel/serve/function_batcher.hpp>
#include <coaccel/serve/hot_swap.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace test_serve_hot_swap_load {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::hot_swap;
using serve::hot_swap_options;
using serve::version_source;
using batcher = serve::function_batcher<int, int>;

constexpr int clients = 16;
constexpr int swaps = test::sanitized ? 60 : 200;

/// What became of the requests.
struct tally {
    std::atomic<std::uint64_t> started{0};
    std::atomic<std::uint64_t> answered{0};
    std::atomic<std::uint64_t> failed{0};
    std::atomic<std::uint64_t> twice{0};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<int> active{0};
    std::atomic<bool> stop{false};

    /// Lets all clients end.
    void end()
    {
        stop = true;
        const auto limit = std::chrono::steady_clock::now() + 60s;
        while (active > 0 && std::chrono::steady_clock::now() < limit)
            std::this_thread::yield();
        REQUIRE(active == 0);
    }
};

enum class kind { good, does_not_load, fails_after_the_switch };

/// Adds one to each number.
version_source<batcher> source(asio::io_context& io, kind how)
{
    version_source<batcher> s;
    s.name = how == kind::good ? "good" : "bad";
    s.load = [&io, how]() -> asio::awaitable<result<batcher>> {
        if (how == kind::does_not_load)
            co_return errc::file_invalid;
        const auto answer = [how](std::span<const int> all) -> asio::awaitable<result<std::vector<int>>> {
            if (how == kind::fails_after_the_switch)
                co_return errc::backend_error;
            std::vector<int> replies;
            for (const int n : all)
                replies.push_back(n + 1);
            co_return replies;
        };
        co_return batcher::create(io.get_executor(), {.max_rows = 8}, answer);
    };
    return s;
}

/// One client: a request after another, each of which must be answered once.
class client : public std::enable_shared_from_this<client> {
public:
    client(hot_swap<batcher> s, tally& t) : swap_(std::move(s)), tally_(t) { ++t.active; }

    void next()
    {
        if (tally_.stop) {
            --tally_.active;
            return;
        }
        ++tally_.started;
        auto answered = std::make_shared<std::atomic<bool>>(false);
        const int n = ++number_;
        swap_.async_call(n, [self = shared_from_this(), answered, n](error_code ec, int reply) {
            tally& t = self->tally_;
            if (answered->exchange(true))
                ++t.twice;
            ++t.answered;
            if (ec)
                ++t.failed;
            else if (reply != n + 1)
                ++t.wrong;
            self->next();
        });
    }

private:
    const hot_swap<batcher> swap_;
    tally& tally_;
    int number_ = 0;
};

/// Threads that run an io_context.
class server {
public:
    server()
    {
        for (int i = 0; i < 3; ++i)
            threads_.emplace_back([this] { io.run(); });
    }

    /// All work must end.
    void join()
    {
        work_.reset();
        for (auto& t : threads_)
            t.join();
        threads_.clear();
    }

    asio::io_context io;

private:
    asio::executor_work_guard<asio::io_context::executor_type> work_{io.get_executor()};
    std::vector<std::thread> threads_;
};

TEST_SUITE("hot_swap under load")
{
    TEST_CASE("swaps from several threads lose no request, answer none twice and let none fail")
    {
        server s;
        tally t;
        {
            hot_swap_options o;
            o.max_waiting_loads = 100;
            o.drain_limit = 0s;
            auto swap = hot_swap<batcher>::create(s.io.get_executor(), o).value();
            REQUIRE(swap.async_load(source(s.io, kind::good), as_result(asio::use_future)).get());
            for (int i = 0; i < clients; ++i)
                std::make_shared<client>(swap, t)->next();
            std::vector<std::thread> operators;
            for (int i = 0; i < 3; ++i)
                operators.emplace_back([&, i] {
                    for (int k = 0; k < swaps / 3; ++k) {
                        const auto how = k % 5 == 4 ? kind::does_not_load : kind::good;
                        const auto done = swap.async_load(source(s.io, how), as_result(asio::use_future)).get();
                        if (done.has_value() != (how == kind::good))
                            ++t.wrong;
                        // Others may have been faster.
                        if (i == 0 && k % 3 == 0)
                            (void)swap.roll_back();
                        if (i == 1 && k % 3 == 0)
                            (void)swap.confirm();
                        (void)swap.stats();
                    }
                });
            for (auto& thread : operators)
                thread.join();
            t.end();
            REQUIRE(swap.async_shutdown(shutdown::drain, as_result(asio::use_future)).get());
            CHECK(swap.stats().switches > static_cast<std::uint64_t>(swaps) / 2);
            CHECK(swap.stats().overdue == 0);
        }
        s.join();
        CHECK(t.started > 0);
        CHECK(t.answered == t.started);
        CHECK(t.twice == 0);
        CHECK(t.wrong == 0);
        CHECK(t.failed == 0);
    }

    TEST_CASE("a version that fails under load is rolled back, each time")
    {
        constexpr int rounds = test::sanitized ? 5 : 20;
        server s;
        tally t;
        {
            hot_swap_options o;
            o.confirm_after = std::chrono::nanoseconds::max();
            o.rollback = {.max_failure_share = 0.5, .min_requests = 10, .max_requests = 50, .window = 0s};
            std::atomic<int> rolled_back{0};
            o.on_event = [&](const serve::swap_event& e) { rolled_back += e.what == serve::swap_change::rolled_back; };
            auto swap = hot_swap<batcher>::create(s.io.get_executor(), o).value();
            REQUIRE(swap.async_load(source(s.io, kind::good), as_result(asio::use_future)).get());
            for (int i = 0; i < clients; ++i)
                std::make_shared<client>(swap, t)->next();
            for (int i = 0; i < rounds; ++i) {
                const auto bad = source(s.io, kind::fails_after_the_switch);
                REQUIRE(swap.async_load(bad, as_result(asio::use_future)).get());
                const auto end = std::chrono::steady_clock::now() + 60s;
                while (rolled_back <= i && std::chrono::steady_clock::now() < end)
                    std::this_thread::yield();
                REQUIRE(rolled_back == i + 1);
                CHECK(swap.stats().current == 1);
            }
            t.end();
            REQUIRE(swap.async_shutdown(shutdown::drain, as_result(asio::use_future)).get());
            const auto counted = swap.stats();
            CHECK(counted.rolled_back_by_rule == rounds);
            // Each bad version has answered at least the requests that the rule needs.
            CHECK(counted.failed >= 10u * rounds);
            CHECK(counted.completed > 0);
        }
        s.join();
        CHECK(t.answered == t.started);
        CHECK(t.twice == 0);
        CHECK(t.wrong == 0);
    }

    TEST_CASE("loads that are cancelled, and a shutdown in the midst of it")
    {
        constexpr int rounds = test::sanitized ? 10 : 50;
        for (int round = 0; round < rounds; ++round) {
            server s;
            tally t;
            std::atomic<int> answered{0};
            constexpr int loads = 6;
            {
                hot_swap_options o;
                o.max_waiting_loads = loads;
                auto swap = hot_swap<batcher>::create(s.io.get_executor(), o).value();
                REQUIRE(swap.async_load(source(s.io, kind::good), as_result(asio::use_future)).get());
                for (int i = 0; i < clients; ++i)
                    std::make_shared<client>(swap, t)->next();
                for (int i = 0; i < loads; ++i) {
                    // The signal belongs to the strand of the operation.
                    auto signal = std::make_shared<asio::cancellation_signal>();
                    const auto strand = asio::make_strand(s.io);
                    asio::post(strand, [&, signal, swap, strand, i] {
                        swap.async_load(source(s.io, kind::good),
                                        asio::bind_cancellation_slot(
                                            signal->slot(),
                                            asio::bind_executor(strand, [&answered, signal](error_code, std::uint64_t) {
                                                ++answered;
                                            })));
                        if (i % 2 == 0)
                            asio::post(strand, [signal] { signal->emit(asio::cancellation_type::terminal); });
                    });
                }
                if (round % 2 == 0) {
                    const auto mode = round % 4 == 0 ? shutdown::drain : shutdown::abandon;
                    REQUIRE(swap.async_shutdown(mode, as_result(asio::use_future)).get());
                }
                t.stop = true;
            }
            s.join();
            CHECK(answered == loads);
            CHECK(t.answered == t.started);
            CHECK(t.twice == 0);
            CHECK(t.wrong == 0);
        }
    }
}

} // namespace test_serve_hot_swap_load
