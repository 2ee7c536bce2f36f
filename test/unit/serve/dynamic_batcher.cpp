#include "await_elsewhere.hpp"
#include "batched_plans.hpp"

#include <coaccel/core/trace.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace test_serve_dynamic_batcher {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::dynamic_batcher;
using test::batcher_fixture;

TEST_SUITE("dynamic_batcher")
{
    TEST_CASE("requests that arrive together share a batch, each gets its own answer")
    {
        for (const auto mode : test::host_modes) {
            CAPTURE(int(mode));
            batcher_fixture f(test::device_fixture::on_host(test::device_fixture::with_mode(mode)));
            const auto b = f.make();
            f.check_right(f.start_many(b, 4));
            const auto s = b.stats();
            CHECK(s.completed == 4);
            CHECK(s.batches == 1);
            CHECK(s.rows == 4);
            CHECK(s.padding == 0);
            CHECK(s.queue_time.count == 4);
            CHECK(s.form_time.count == 1);
            CHECK(s.run_time.count == 1);
            CHECK(s.sizes.sum == 4);
        }
    }

    TEST_CASE("a lone request runs at once, with the smaller plan after it was loaded")
    {
        batcher_fixture f;
        const auto b = f.make({.max_delay = 1h});
        f.check_right({f.start(b, 1)});
        // The first time the smaller plan was not there, so the batch was padded.
        CHECK(b.stats().padding == 3);
        test::run_until(f.io, [&] {
            f.check_right({f.start(b, 2)});
            const auto s = b.stats();
            return s.padding < 3 * s.batches;
        });
    }

    TEST_CASE("many requests are answered, whatever batches they are in")
    {
        batcher_fixture f;
        const auto b = f.make({}, {test::plus_one_model({1, 3, 16})});
        for (int round = 0; round < 20; ++round)
            f.check_right(f.start_many(b, 1 + 7 * round % 61));
        CHECK(b.stats().failed == 0);
    }

    TEST_CASE("a request may have several rows")
    {
        batcher_fixture f;
        const auto b = f.make();
        f.check_right({f.start(b, 10, 3), f.start(b, 20, 1), f.start(b, 30, 2), f.start(b, 40, 4)});
        CHECK(b.stats().rows == 10);
    }

    TEST_CASE("the number of arguments may be known only at run time")
    {
        batcher_fixture f;
        const auto b = f.make();
        const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8};
        std::vector<float> y(8);
        std::vector<run_range> all{from(x), to(y)};
        const auto done = test::await(f.io, b.with(within(60s)).async_run_all(all));
        CHECK_MESSAGE(done, done.error().message());
        CHECK(y == std::vector<float>{2, 3, 4, 5, 6, 7, 8, 9});
        all.pop_back();
        CHECK(test::await(f.io, b.async_run_all(all)).error() == errc::invalid_argument);
        CHECK(test::await_elsewhere(dynamic_batcher().async_run_all(all)).error() == errc::invalid_argument);
    }

    TEST_CASE("requests of several shapes go to their models")
    {
        batcher_fixture f;
        const auto b = f.make({}, {test::plus_one_model({4}, 4), test::plus_one_model({1, 4}, 7)});
        test::row_runs all;
        for (int i = 0; i < 12; ++i)
            all.push_back(f.start(b, static_cast<float>(i), 1, {}, i % 2 == 0 ? 4 : 7));
        f.check_right(all);
        CHECK(b.stats().rows == 12);
    }

    TEST_CASE("of several models that fit, the one with the fewest rows gets the request")
    {
        batcher_fixture f;
        const auto b = f.make({}, {test::plus_one_model({4}, 4), test::plus_one_model({4}, 8)});
        f.check_right({f.start(b, 0, 1, {}, 8)});
        CHECK(b.stats().rows == 1);
    }

    TEST_CASE("in order of arrival requests complete one after another")
    {
        batcher_fixture f;
        const auto b = f.make({.max_in_flight = 4, .order = serve::completion_order::arrival});
        const auto all = f.start_many(b, 50);
        f.check_right(all);
        for (std::size_t i = 0; i < all.size(); ++i)
            CHECK(all[i]->place == int(i));
    }

    TEST_CASE("never completes in the initiating call")
    {
        batcher_fixture f;
        const auto b = f.make();
        const auto refused = f.start(b, 0, 5);
        const auto good = f.start(b);
        CHECK_FALSE(refused->ended());
        CHECK_FALSE(good->ended());
        CHECK(f.outcome(refused) == errc::length_mismatch);
        f.check_right({good});
    }

    TEST_CASE("any completion token works, and the handler runs on its executor")
    {
        batcher_fixture f;
        const auto b = f.make();
        std::vector<float> x(4, 1);
        std::vector<float> y(4);
        auto future = b.async_run(from(x), to(y), asio::use_future);
        test::run_until(f.io, [&] { return future.wait_for(0s) == std::future_status::ready; });
        future.get();
        CHECK(y == std::vector<float>(4, 2));
        auto strand = asio::make_strand(f.io);
        bool inside = false;
        b.async_run(from(y), to(x),
                    asio::bind_executor(strand, [&](error_code) { inside = strand.running_in_this_thread(); }));
        test::run_until(f.io, [&] { return inside; });
        test::co_run(f.io, [](dynamic_batcher batcher) -> asio::awaitable<void> {
            std::vector<float> in(4, 5);
            std::vector<float> answer(4);
            co_await batcher.async_run(from(in), to(answer), asio::use_awaitable);
            CHECK(answer == std::vector<float>(4, 6));
            auto r = co_await batcher.async_run(from(in), to(answer));
            CHECK(r);
        }(b));
    }

    TEST_CASE("several threads may use one batcher")
    {
        asio::io_context io;
        auto work = asio::make_work_guard(io);
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i)
            threads.emplace_back([&] { io.run(); });
        auto gpu = device::async_create(io.get_executor(), test::pool_options(), asio::use_future).get();
        auto b = dynamic_batcher::async_create(io.get_executor(), std::vector{gpu},
                                               std::vector{test::plus_one_model({1, 8})}, {}, asio::use_future)
                     .get();
        std::atomic<int> wrong{0};
        std::vector<std::thread> clients;
        for (int c = 0; c < 3; ++c)
            clients.emplace_back([&, c] {
                for (int i = 0; i < 200; ++i) {
                    std::vector<float> x(4, static_cast<float>(1000 * c + i));
                    std::vector<float> y(4);
                    b.async_run(from(x), to(y), asio::use_future).get();
                    wrong += y != std::vector<float>(4, x[0] + 1);
                }
            });
        for (auto& t : clients)
            t.join();
        CHECK(wrong == 0);
        CHECK(b.stats().completed == 600);
        b = {};
        gpu = {};
        work.reset();
        for (auto& t : threads)
            t.join();
    }

    TEST_CASE("it traces requests and batches, with arrows from request to batch to run")
    {
        const auto trace = trace_buffer::create();
        auto o = test::device_fixture::on_host(test::device_fixture::with_mode(host_mode::pool));
        o.trace = trace.get();
        batcher_fixture f(o);
        const auto b = f.make({.name = "classify", .trace = trace.get()});
        f.check_right({f.start(b, 1, 1, {.trace = 77}), f.start(b, 2), f.start(b, 3), f.start(b, 4)});
        const auto late = f.start(b, 0, 1, within(-1ms));
        CHECK(f.outcome(late) == errc::deadline_exceeded);
        const auto all = trace->snapshot();
        const auto of = [&](trace_kind kind) {
            std::vector<trace_event> found;
            std::ranges::copy_if(all.events, std::back_inserter(found), [&](const auto& e) { return e.kind == kind; });
            return found;
        };
        const auto batches = of(trace_kind::batch);
        const auto requests = of(trace_kind::request);
        const auto runs = of(trace_kind::run);
        REQUIRE(batches.size() == 1);
        CHECK(batches[0].value == 4);
        CHECK(all.tracks[batches[0].track.index] == "classify");
        REQUIRE(requests.size() == 5);
        for (std::size_t i = 0; i < 4; ++i)
            CHECK(requests[i].leads_to == batches[0].id);
        CHECK(requests[0].parent == 77);
        CHECK(requests[4].outcome == trace_outcome::expired);
        CHECK(requests[4].leads_to == 0);
        REQUIRE(runs.size() == 1);
        CHECK(runs[0].parent == batches[0].id);
    }

    TEST_CASE("it reports metrics")
    {
        batcher_fixture f;
        const auto b = f.make({.name = "classify"});
        const telemetry::registry metrics(f.io.get_executor());
        const auto registered = b.report_to(metrics);
        f.check_right(f.start_many(b, 4));
        const auto all = test::await(f.io, metrics.async_collect());
        REQUIRE(all);
        int found = 0;
        for (const auto& family : all.value().families)
            found += family.name.starts_with("coaccel_batcher_");
        CHECK(found == 12);
    }
}

} // namespace test_serve_dynamic_batcher
