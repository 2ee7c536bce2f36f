#include "batched_plans.hpp"
#include "support/co_run.hpp"
#include "support/devices.hpp"

#include <coaccel/serve/function_batcher.hpp>
#include <coaccel/serve/hot_swap.hpp>
#include <coaccel/serve/replica_pool.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace test_serve_hot_swap_versions {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::dynamic_batcher;
using serve::hot_swap;
using serve::hot_swap_options;
using serve::version_source;

using texts = serve::function_batcher<std::string, std::string>;
using text_function = std::function<asio::awaitable<result<std::string>>(std::string)>;

/// Answers with its own name.
version_source<texts> text_batcher(asio::io_context& io, std::string name)
{
    version_source<texts> s;
    s.name = name;
    s.load = [&io, name]() -> asio::awaitable<result<texts>> {
        const auto answer =
            [name](std::span<const std::string> all) -> asio::awaitable<result<std::vector<std::string>>> {
            std::vector<std::string> replies;
            for (const auto& text : all)
                replies.push_back(name + text);
            co_return replies;
        };
        co_return texts::create(io.get_executor(), {}, answer);
    };
    return s;
}

version_source<text_function> text_answer(std::string name)
{
    version_source<text_function> s;
    s.name = name;
    s.load = [name]() -> asio::awaitable<result<text_function>> {
        co_return text_function([name](std::string text) -> asio::awaitable<result<std::string>> {
            if (text == "throw")
                throw std::runtime_error("no luck");
            if (text == "hang") {
                asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
                co_await never.async_wait(asio::use_awaitable);
            }
            if (text == "bad")
                co_return errc::wrong_dtype;
            co_return name + text;
        });
    };
    return s;
}

TEST_SUITE("hot_swap versions")
{
    TEST_CASE("versions can be batchers of plans, and requests of both run at the same time")
    {
        asio::io_context io{1};
        const auto gpu = test::make_device(io);
        hot_swap_options o;
        o.confirm_after = 0s;
        auto swap = hot_swap<dynamic_batcher>::create(io.get_executor(), o).value();
        version_source<dynamic_batcher> source;
        source.name = "plus one";
        source.load = [&]() -> asio::awaitable<result<dynamic_batcher>> {
            const std::vector devices{gpu};
            const std::vector models{test::plus_one_model()};
            const serve::batcher_options how;
            auto made = co_await dynamic_batcher::async_create(io.get_executor(), devices, models, how);
            co_return made;
        };
        source.warm_up = [](const dynamic_batcher& b) -> asio::awaitable<result<void>> {
            std::vector<float> x(test::row_elements);
            std::vector<float> y(test::row_elements);
            auto done = co_await b.async_run(from(x), to(y));
            co_return done;
        };
        std::vector<float> x(test::row_elements, 1);
        std::vector<float> y(test::row_elements);
        CHECK(test::await(io, swap.async_run(from(x), to(y))).error() == errc::actor_stopped);
        REQUIRE(test::await(io, swap.async_load(source)));
        const auto first = *swap.pick().value(); // one request without an outcome
        CHECK(first.stats().completed == 1);
        REQUIRE(test::await(io, swap.async_run(from(x), to(y))));
        CHECK(y[3] == 2);
        // Started on the first version, which is replaced before it is answered.
        std::vector<float> z(test::row_elements);
        auto future = swap.async_run(from(x), to(z), asio::use_future);
        REQUIRE(test::await(io, swap.async_load(source)));
        test::run_until(io, [&] { return future.wait_for(0s) == std::future_status::ready; });
        future.get();
        CHECK(z[3] == 2);
        REQUIRE(test::await(io, swap.with(within(10s)).async_run(from(x), to(y))));
        const auto late = test::await(io, swap.with(within(-1s)).async_run(from(x), to(y)));
        CHECK(late.error() == errc::deadline_exceeded);
        // The old batcher was shut down, not only dropped: this copy of it still exists.
        test::run_until(io, [&] { return swap.stats().versions.size() == 1; });
        CHECK(test::await(io, first.async_run(from(x), to(y))).error() == errc::actor_stopped);
        CHECK(first.stats().completed == 3);
        x.resize(3);
        CHECK(test::await(io, swap.async_run(from(x), to(y))).error() == errc::length_mismatch);
        CHECK(swap.stats().other == 2);
        CHECK(swap.stats().failed == 1);
        CHECK(swap.stats().completed == 3);
        REQUIRE(test::await(io, swap.async_shutdown(shutdown::drain)));
    }

    TEST_CASE("versions can be plans")
    {
        asio::io_context io{1};
        const auto gpu = test::make_device(io);
        auto swap = hot_swap<plan>::create(io.get_executor()).value();
        version_source<plan> source;
        source.load = [&]() -> asio::awaitable<result<plan>> {
            const auto described = test::plus_one(1).plan;
            auto loaded = co_await gpu.async_load(described);
            co_return loaded;
        };
        REQUIRE(test::await(io, swap.async_load(source)));
        std::vector<float> x(test::row_elements, 1);
        std::vector<float> y(test::row_elements);
        REQUIRE(test::await(io, swap.async_run(from(x), to(y))));
        CHECK(y[0] == 2);
    }

    TEST_CASE("versions can be batchers of functions")
    {
        asio::io_context io{1};
        auto swap = hot_swap<texts>::create(io.get_executor()).value();
        REQUIRE(test::await(io, swap.async_load(text_batcher(io, "a"))));
        CHECK(test::await(io, swap.async_call(std::string("1"))).value() == "a1");
        auto before = swap.async_call("2", asio::use_future);
        REQUIRE(test::await(io, swap.async_load(text_batcher(io, "b"))));
        auto after = swap.async_call("2", within(10s), asio::use_future);
        test::run_until(io, [&] { return after.wait_for(0s) == std::future_status::ready; });
        CHECK(before.get() == "a2");
        CHECK(after.get() == "b2");
    }

    TEST_CASE("versions can be pools of replicas")
    {
        asio::io_context io{1};
        const auto gpu = test::make_device(io);
        using pool = serve::replica_pool<std::string>;
        auto swap = hot_swap<pool>::create(io.get_executor(), {.confirm_after = 0s}).value();
        for (const std::string name : {"a", "b"}) {
            version_source<pool> source;
            source.load = [&]() -> asio::awaitable<result<pool>> {
                std::vector<serve::replica<std::string>> replicas{{name + "0", gpu}, {name + "1", gpu}};
                co_return pool::create(io.get_executor(), std::move(replicas));
            };
            REQUIRE(test::await(io, swap.async_load(source)));
            auto version = swap.pick().value();
            const auto replica = version->pick().value();
            CHECK(*replica == name + "0");
            version.ended({});
        }
    }

    TEST_CASE("versions can be functions, whose exceptions are errors")
    {
        asio::io_context io{1};
        hot_swap_options o;
        o.name = "text";
        auto swap = hot_swap<text_function>::create(io.get_executor(), o).value();
        CHECK(test::await(io, swap.async_call(std::string("1"))).error() == errc::actor_stopped);
        REQUIRE(test::await(io, swap.async_load(text_answer("a"))));
        CHECK(test::await(io, swap.async_call(std::string("1"))).value() == "a1");
        CHECK(test::await(io, swap.async_call(std::string("bad"))).error() == errc::wrong_dtype);
        const auto ec = test::await(io, swap.async_call(std::string("throw"))).error();
        CHECK(ec == errc::user_exception);
        CHECK(ec.message() == "text: the function threw: no luck");
        const auto s = swap.stats();
        CHECK(s.completed == 1);
        CHECK(s.failed == 1);
        CHECK(s.other == 1);
    }

    TEST_CASE("a client that goes away cancels its request, which does not count against the version")
    {
        asio::io_context io{1};
        hot_swap_options o;
        o.confirm_after = 0s;
        auto swap = hot_swap<text_function>::create(io.get_executor(), o).value();
        REQUIRE(test::await(io, swap.async_load(text_answer("a"))));
        asio::cancellation_signal signal;
        std::optional<error_code> ended;
        swap.async_call(std::string("hang"),
                        asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, std::string) { ended = ec; }));
        test::run_until(io, [&] { return swap.stats().versions.front().in_flight == 1; });
        io.poll();
        REQUIRE(test::await(io, swap.async_load(text_answer("b"))));
        CHECK(swap.stats().versions.size() == 2);
        signal.emit(asio::cancellation_type::terminal);
        test::run_until(io, [&] { return ended.has_value(); });
        CHECK(*ended == asio::error::operation_aborted);
        test::run_until(io, [&] { return swap.stats().versions.size() == 1; });
        CHECK(swap.stats().failed == 0);
        CHECK(swap.stats().other == 1);
    }

    TEST_CASE("handlers run on their own executor")
    {
        asio::io_context io{1};
        auto swap = hot_swap<text_function>::create(io.get_executor()).value();
        const auto strand = asio::make_strand(io);
        int right = 0;
        const auto note = [&](auto&&...) { right += strand.running_in_this_thread(); };
        swap.async_call(std::string("1"), asio::bind_executor(strand, note));
        swap.async_load(text_answer("a"), asio::bind_executor(strand, note));
        test::run_until(io, [&] { return right == 2; });
        swap.async_call(std::string("1"), asio::bind_executor(strand, note));
        CHECK(right == 2);
        test::run_until(io, [&] { return right == 3; });
        swap.async_shutdown(shutdown::drain, asio::bind_executor(strand, note));
        test::run_until(io, [&] { return right == 4; });
    }

    TEST_CASE("handlers without an executor run on that of the hot_swap, not on that of the version")
    {
        asio::io_context io{1};
        const auto strand = asio::make_strand(io);
        int right = 0;
        const auto note = [&](error_code ec, auto&&...) { right += !ec && strand.running_in_this_thread(); };
        auto batchers = hot_swap<texts>::create(strand).value();
        REQUIRE(test::await(io, batchers.async_load(text_batcher(io, "a"))));
        batchers.async_call(std::string("1"), note);
        test::run_until(io, [&] { return batchers.stats().completed == 1; });
        CHECK(right == 1);

        const auto gpu = test::make_device(io);
        auto plans = hot_swap<plan>::create(strand).value();
        version_source<plan> source;
        source.load = [&]() -> asio::awaitable<result<plan>> {
            const auto described = test::plus_one(1).plan;
            auto loaded = co_await gpu.async_load(described);
            co_return loaded;
        };
        REQUIRE(test::await(io, plans.async_load(source)));
        std::vector<float> x(test::row_elements, 1);
        std::vector<float> y(test::row_elements);
        plans.async_run(from(x), to(y), note);
        test::run_until(io, [&] { return plans.stats().completed == 1; });
        CHECK(right == 2);
    }

    TEST_CASE("requests that an execution context drops do not keep the versions")
    {
        auto alive = std::make_shared<int>();
        hot_swap<text_function> kept;
        {
            asio::io_context io{1};
            kept = hot_swap<text_function>::create(io.get_executor()).value();
            version_source<text_function> source;
            source.load = [alive]() -> asio::awaitable<result<text_function>> {
                co_return text_function([alive](std::string) -> asio::awaitable<result<std::string>> {
                    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
                    co_await never.async_wait(asio::use_awaitable);
                    co_return "";
                });
            };
            REQUIRE(test::await(io, kept.async_load(std::exchange(source, {}))));
            kept.async_call(std::string("1"), [kept](error_code, std::string) { FAIL("not called"); });
            io.poll();
            // In the version.
            CHECK(alive.use_count() > 1);
        }
        CHECK(alive.use_count() == 1);
    }

    TEST_CASE("requests after the execution context are destroyed")
    {
        auto alive = std::make_shared<int>();
        hot_swap<text_function> functions;
        hot_swap<texts> batchers;
        {
            asio::io_context io{1};
            functions = hot_swap<text_function>::create(io.get_executor()).value();
            batchers = hot_swap<texts>::create(io.get_executor()).value();
            REQUIRE(test::await(io, functions.async_load(text_answer("a"))));
        }
        std::atomic<int> calls{0};
        functions.async_call(std::string("1"), [alive, &calls](error_code, std::string) { ++calls; });
        batchers.async_call(std::string("1"), [alive, &calls](error_code, std::string) { ++calls; });
        CHECK(alive.use_count() == 1);
        CHECK(calls == 0);
        CHECK_THROWS_AS(functions.async_call(std::string("1"), asio::use_future).get(), std::future_error);
    }
}

} // namespace test_serve_hot_swap_versions
