#include "await_elsewhere.hpp"
#include "support/co_run.hpp"
#include "support/devices.hpp"

#include <coaccel/serve/function_batcher.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace test_serve_function_batcher {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::batcher_options;
using replies = result<std::vector<int>>;
using batcher = serve::function_batcher<std::string, int>;

/// The lengths of the texts.
asio::awaitable<replies> lengths(std::span<const std::string> texts)
{
    std::vector<int> all;
    for (const auto& t : texts)
        all.push_back(static_cast<int>(t.size()));
    co_return all;
}

struct call {
    bool ended() const noexcept { return completions > 0; }

    int completions = 0;
    error_code ec;
    int reply = -1;
    asio::cancellation_signal signal;
};

struct fixture {
    using function = std::function<asio::awaitable<replies>(std::span<const std::string>)>;

    explicit fixture(function f = lengths, const batcher_options& o = {}, batcher::key_function key = {})
        : b(batcher::create(io.get_executor(), o, std::move(f), std::move(key)).value())
    {}

    ~fixture()
    {
        b = {};
        test::run_out(io);
    }

    std::shared_ptr<call> start(const std::string& text, const exec_options& how = {})
    {
        auto c = std::make_shared<call>();
        b.async_call(text, how, asio::bind_cancellation_slot(c->signal.slot(), [c](error_code ec, int n) {
                         ++c->completions;
                         c->ec = ec;
                         c->reply = n;
                     }));
        return c;
    }

    error_code outcome(const std::shared_ptr<call>& c)
    {
        test::run_until(io, [&] { return c->ended(); });
        CHECK(c->completions == 1);
        return c->ec;
    }

    asio::io_context io{1};
    batcher b;
};

/// The batches that the function was called with.
using batches = std::vector<std::vector<std::string>>;

/// A function that notes its batches, and fails in some way for a batch with this text.
template <class Failure>
fixture::function noting(batches& seen, std::string bad, Failure failure)
{
    return [&seen, bad, failure](std::span<const std::string> texts) -> asio::awaitable<replies> {
        seen.emplace_back(texts.begin(), texts.end());
        if (std::ranges::find(texts, bad) != texts.end())
            co_return failure(texts.size());
        co_return co_await lengths(texts);
    };
}

TEST_SUITE("function_batcher")
{
    TEST_CASE("requests that arrive together are answered by one call")
    {
        batches seen;
        fixture f(noting(seen, "none", [](std::size_t) { return replies(); }), {.max_in_flight = 1});
        const auto a = f.start("a");
        const auto b = f.start("bb");
        const auto c = f.start("");
        CHECK(!f.outcome(a));
        CHECK(!f.outcome(b));
        CHECK(!f.outcome(c));
        CHECK(a->reply == 1);
        CHECK(b->reply == 2);
        CHECK(c->reply == 0);
        CHECK(seen == batches{{"a", "bb", ""}});
        CHECK(f.b.stats().completed == 3);
    }

    TEST_CASE("works with co_await and with a future")
    {
        fixture f;
        test::co_run(f.io, [](batcher b) -> asio::awaitable<void> {
            std::string text = "four";
            auto r = co_await b.async_call(std::move(text));
            REQUIRE(r);
            CHECK(r.value() == 4);
        }(f.b));
        auto future = f.b.async_call("five!", asio::use_future);
        test::run_until(f.io, [&] { return future.wait_for(0s) == std::future_status::ready; });
        CHECK(future.get() == 5);
    }

    TEST_CASE("requests with different keys are not passed together")
    {
        batches seen;
        fixture f(noting(seen, "none", [](std::size_t) { return replies(); }), {.max_in_flight = 8},
                  [](const std::string& s) { return s.size(); });
        std::vector<std::shared_ptr<call>> all;
        for (const char* s : {"a", "bb", "c", "dd", "eee"})
            all.push_back(f.start(s));
        for (const auto& c : all)
            CHECK(!f.outcome(c));
        for (const auto& batch : seen)
            for (const auto& s : batch)
                CHECK(s.size() == batch.front().size());
    }

    TEST_CASE("an error that the function returns is the answer to its whole batch")
    {
        batches seen;
        fixture f(noting(seen, "bad", [](std::size_t) { return replies(errc::out_of_memory); }), {.max_in_flight = 1});
        const auto a = f.start("bad");
        const auto b = f.start("good");
        CHECK(f.outcome(a) == errc::out_of_memory);
        CHECK(f.outcome(b) == errc::out_of_memory);
        CHECK(!f.outcome(f.start("later")));
        CHECK(f.b.stats().failed == 2);
        CHECK(f.b.stats().restarts == 0);
    }

    TEST_CASE("after context_lost each request is tried alone, and only the bad one fails")
    {
        batches seen;
        fixture f(noting(seen, "bad", [](std::size_t) { return replies(errc::context_lost); }), {.max_in_flight = 1});
        const auto a = f.start("good");
        const auto b = f.start("bad");
        const auto c = f.start("fine!");
        CHECK(!f.outcome(a));
        CHECK(f.outcome(b) == errc::context_lost);
        CHECK(!f.outcome(c));
        CHECK(a->reply == 4);
        CHECK(c->reply == 5);
        CHECK(seen == batches{{"good", "bad", "fine!"}, {"good"}, {"bad"}, {"fine!"}});
        CHECK(f.b.stats().split == 1);
        CHECK(f.b.stats().failed == 1);
    }

    TEST_CASE("a request that is alone in its batch is not tried again")
    {
        batches seen;
        fixture f(noting(seen, "bad", [](std::size_t) { return replies(errc::context_lost); }));
        CHECK(f.outcome(f.start("bad")) == errc::context_lost);
        CHECK(seen.size() == 1);
    }

    TEST_CASE("a function that throws fails its batch, and the batcher goes on")
    {
        batches seen;
        fixture f(noting(seen, "bad", [](std::size_t) -> replies { throw std::runtime_error("no luck"); }));
        const auto ec = f.outcome(f.start("bad"));
        CHECK(ec == errc::user_exception);
        CHECK(ec.message() == "batcher: the function threw: no luck");
        CHECK(!f.outcome(f.start("good")));
        CHECK(f.b.stats().restarts == 1);
    }

    TEST_CASE("a function that throws something else, and one that is no coroutine, are reported likewise")
    {
        SUBCASE("no std::exception")
        {
            batches seen;
            fixture f(noting(seen, "bad", [](std::size_t) -> replies { throw 1; }));
            CHECK(f.outcome(f.start("bad")).message() ==
                  "batcher: the function threw something that is no std::exception");
        }
        SUBCASE("thrown before there is a coroutine")
        {
            fixture f(
                [](std::span<const std::string>) -> asio::awaitable<replies> { throw std::runtime_error("at once"); });
            CHECK(f.outcome(f.start("bad")).message() == "batcher: the function threw: at once");
        }
    }

    TEST_CASE("the wrong number of replies is an error that says so")
    {
        batches seen;
        fixture f(noting(seen, "bad", [](std::size_t n) { return replies(std::vector<int>(n + 1)); }));
        const auto ec = f.outcome(f.start("bad"));
        CHECK(ec == errc::no_reply);
        CHECK(ec.message() == "batcher: the function returned 2 replies for 1 requests");
        CHECK(!f.outcome(f.start("good")));
    }

    TEST_CASE("a function that fails too often fails the batcher, until it is revived")
    {
        batches seen;
        batcher_options o;
        o.restart.max_restarts = 2;
        o.restart.initial_backoff = 1us;
        fixture f(noting(seen, "bad", [](std::size_t) -> replies { throw std::runtime_error("no luck"); }), o);
        for (int i = 0; i < 3; ++i)
            CHECK(f.outcome(f.start("bad")) == errc::user_exception);
        const auto ec = f.outcome(f.start("good"));
        CHECK(ec == errc::actor_stopped);
        CHECK(ec.message() == "batcher: the batcher has failed: batcher: the function threw: no luck");
        REQUIRE(test::await(f.io, f.b.async_revive()));
        CHECK(!f.outcome(f.start("good")));
    }

    TEST_CASE("a policy that stops at once is followed")
    {
        batches seen;
        batcher_options o;
        o.restart.decider = [](const error_code&) noexcept { return directive::stop; };
        fixture f(noting(seen, "bad", [](std::size_t) -> replies { throw 1; }), o);
        CHECK(f.outcome(f.start("bad")) == errc::user_exception);
        CHECK(f.outcome(f.start("good")) == errc::actor_stopped);
    }

    TEST_CASE("a function that never ends is cancelled after run_limit, and its requests are answered")
    {
        bool cancelled = false;
        const auto hangs = [&](std::span<const std::string> texts) -> asio::awaitable<replies> {
            if (texts.front() != "bad")
                co_return co_await lengths(texts);
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            const auto [ec] = co_await never.async_wait(asio::as_tuple(asio::use_awaitable));
            cancelled = ec == asio::error::operation_aborted;
            co_return ec;
        };
        fixture f(hangs, {.max_in_flight = 1, .run_limit = 1ms});
        const auto ec = f.outcome(f.start("bad"));
        CHECK(ec == errc::deadline_exceeded);
        CHECK(ec.message() == "batcher: a batch took longer than run_limit");
        CHECK(!f.outcome(f.start("good")));
        CHECK(cancelled);
        CHECK(f.b.stats().restarts == 1);
    }

    TEST_CASE("functions that ignore their cancellation do not use up the places")
    {
        int hung = 0;
        asio::io_context io(1);
        std::vector<std::shared_ptr<asio::steady_timer>> kept;
        const auto hangs = [&](std::span<const std::string> texts) -> asio::awaitable<replies> {
            if (texts.front() != "bad")
                co_return co_await lengths(texts);
            ++hung;
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            auto never = std::make_shared<asio::steady_timer>(io, asio::steady_timer::time_point::max());
            kept.push_back(never);
            (void)co_await never->async_wait(asio::as_tuple(asio::use_awaitable));
            co_return co_await lengths(texts);
        };
        batcher_options o{.max_in_flight = 1, .order = serve::completion_order::arrival, .run_limit = 1ms};
        o.restart.initial_backoff = 1us;
        fixture f(hangs, o);
        for (int i = 0; i < 3; ++i) {
            CHECK(f.outcome(f.start("bad")) == errc::deadline_exceeded);
            CHECK(!f.outcome(f.start("good")));
        }
        CHECK(hung == 3);
        // Their end changes nothing, and a drain does not wait for it.
        kept.front()->cancel();
        io.run_for(1ms);
        CHECK(!f.outcome(f.start("good")));
        REQUIRE(test::await(f.io, f.b.async_shutdown(shutdown::drain)));
        CHECK(f.b.stats().completed == 4);
        for (const auto& timer : kept)
            timer->cancel();
        io.restart();
        io.run();
    }

    TEST_CASE("the function is not called within a turn, so that calls run beside each other")
    {
        asio::io_context io;
        auto work = asio::make_work_guard(io);
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] { io.run(); });
        {
            std::atomic<int> inside{0};
            // Each call waits for the other one, on its thread.
            const auto meets = [&](std::span<const std::string> texts) -> asio::awaitable<replies> {
                ++inside;
                while (inside < 2)
                    std::this_thread::yield();
                co_return co_await lengths(texts);
            };
            auto b = batcher::create(io.get_executor(), {.max_rows = 1, .max_in_flight = 2}, meets).value();
            auto one = b.async_call("a", asio::use_future);
            auto two = b.async_call("bb", asio::use_future);
            CHECK(one.get() == 1);
            CHECK(two.get() == 2);
        }
        work.reset();
        for (auto& t : threads)
            t.join();
    }

    TEST_CASE("a batcher may outlive its execution context, with calls in progress")
    {
        batcher kept;
        auto alive = std::make_shared<int>();
        {
            asio::io_context io;
            const auto hangs = [&io](std::span<const std::string>) -> asio::awaitable<replies> {
                asio::steady_timer never(io, asio::steady_timer::time_point::max());
                co_await never.async_wait(asio::use_awaitable);
                co_return replies();
            };
            kept = batcher::create(io.get_executor(), {.max_in_flight = 1}, hangs).value();
            kept.async_call("running", [alive](error_code, int) { FAIL("not called"); });
            test::run_until(io, [&] { return kept.stats().in_flight == 1; });
            kept.async_call("waiting", [alive](error_code, int) { FAIL("not called"); });
            CHECK(alive.use_count() == 3);
        }
        CHECK(alive.use_count() == 1);
        kept.async_call("late", [alive](error_code, int) { FAIL("not called"); });
        CHECK(alive.use_count() == 1);
    }

    TEST_CASE("waiting and running requests can be cancelled")
    {
        asio::io_context* io = nullptr;
        bool go_on = false;
        const auto waits = [&](std::span<const std::string> texts) -> asio::awaitable<replies> {
            asio::steady_timer timer(*io);
            while (!go_on) {
                timer.expires_after(100us);
                co_await timer.async_wait(asio::use_awaitable);
            }
            co_return co_await lengths(texts);
        };
        fixture f(waits, {.max_in_flight = 1});
        io = &f.io;
        const auto running = f.start("running");
        test::run_until(f.io, [&] { return f.b.stats().in_flight == 1; });
        const auto waiting = f.start("waiting");
        waiting->signal.emit(asio::cancellation_type::total);
        CHECK(f.outcome(waiting) == asio::error::operation_aborted);
        running->signal.emit(asio::cancellation_type::total);
        f.io.poll();
        CHECK_FALSE(running->ended());
        running->signal.emit(asio::cancellation_type::terminal);
        CHECK(f.outcome(running) == asio::error::operation_aborted);
        go_on = true;
        CHECK(!f.outcome(f.start("after")));
    }

    TEST_CASE("shutdown refuses later requests, and ends waiting ones if they are abandoned")
    {
        fixture f(lengths, {.max_delay = 1h, .delay = serve::delay_rule::fixed});
        const auto waiting = f.start("waiting");
        f.io.poll();
        REQUIRE(test::await(f.io, f.b.async_shutdown(shutdown::abandon)));
        CHECK(f.outcome(waiting) == errc::actor_stopped);
        CHECK(f.outcome(f.start("late")).message() == "batcher: the batcher has been stopped");
        const auto revived = test::await(f.io, f.b.async_revive());
        REQUIRE_FALSE(revived);
        CHECK(revived.error() == errc::actor_stopped);
    }

    TEST_CASE("a drained batcher does not wait for further requests")
    {
        fixture f(lengths, {.max_delay = 1h, .delay = serve::delay_rule::fixed});
        const auto waiting = f.start("waiting");
        f.io.poll();
        REQUIRE(test::await(f.io, f.b.async_shutdown(shutdown::drain)));
        CHECK(!f.outcome(waiting));
        CHECK(waiting->reply == 7);
    }

    TEST_CASE("an empty batcher and bad options are refused")
    {
        fixture f;
        const auto ec = f.outcome(f.start("x", {.priority = static_cast<priority>(3)}));
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == "batcher: priority is 3, which is not a priority");
        const auto none = test::await_elsewhere(batcher().async_call("x"));
        REQUIRE_FALSE(none);
        CHECK(none.error() == errc::invalid_argument);
        CHECK(batcher::create(f.io.get_executor(), {.max_in_flight = 65}, lengths).error() == errc::invalid_option);
    }

    TEST_CASE("calls run on several threads at once")
    {
        asio::io_context io;
        auto work = asio::make_work_guard(io);
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i)
            threads.emplace_back([&] { io.run(); });
        {
            auto b = batcher::create(io.get_executor(), {.max_rows = 8}, lengths).value();
            std::vector<std::thread> clients;
            std::atomic<int> wrong{0};
            for (int c = 0; c < 3; ++c)
                clients.emplace_back([&] {
                    for (int i = 0; i < 300; ++i)
                        wrong +=
                            b.async_call(std::string(static_cast<std::size_t>(i), 'x'), asio::use_future).get() != i;
                });
            for (auto& t : clients)
                t.join();
            CHECK(wrong == 0);
        }
        work.reset();
        for (auto& t : threads)
            t.join();
    }
}

} // namespace test_serve_function_batcher
