#include "support/co_run.hpp"
#include "support/devices.hpp"
#include "support/sanitized.hpp"

#include <coaccel/serve/hot_swap.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace test_serve_hot_swap_functions {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::hot_swap;
using serve::version_source;

using text_function = std::function<asio::awaitable<result<std::string>>(std::string)>;

template <class F>
version_source<F> just(F f)
{
    version_source<F> s;
    s.name = "just";
    s.load = [f]() -> asio::awaitable<result<F>> { co_return f; };
    return s;
}

/// A hot_swap whose version is this function.
struct world {
    explicit world(text_function f)
    {
        serve::hot_swap_options o;
        o.name = "text";
        swap = hot_swap<text_function>::create(io.get_executor(), o).value();
        REQUIRE(test::await(io, swap.async_load(just(std::move(f)))));
    }

    asio::io_context io{1};
    hot_swap<text_function> swap;
};

asio::awaitable<result<std::string>> echo(std::string text)
{
    co_return text;
}

asio::awaitable<result<std::string>> wait_forever(std::string)
{
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
    co_return "";
}

/// An operation that destroys its handler.
struct drop_handler {
    template <class Handler>
    void operator()(Handler&&) const
    {}
};

asio::awaitable<result<std::string>> vanish(std::string)
{
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(drop_handler{}, asio::use_awaitable);
    co_return "";
}

asio::awaitable<result<std::string>> fail_without_a_code(std::string)
{
    co_return error_code();
}

// What a T must have.

struct both {
    using request_type = int;
    using reply_type = int;

    template <class Token>
    auto async_call(int, const exec_options&, Token&& token) const
    {
        return asio::async_initiate<Token, void(error_code, int)>(
            [](auto handler) {
                const auto ex = asio::get_associated_executor(handler, asio::any_io_executor(asio::system_executor()));
                asio::post(ex, [h = std::move(handler)]() mutable { std::move(h)(error_code(), 1); });
            },
            token);
    }

    asio::awaitable<result<int>> operator()(int) const { co_return 2; }
};

struct no_awaitable {
    int operator()(int) const { return 1; }
};

struct overloaded {
    asio::awaitable<result<int>> operator()(int n) const { co_return n; }
    asio::awaitable<result<std::string>> operator()(std::string text) const { co_return text; }
};

struct ignored {
    template <class... Args>
    void operator()(Args&&...) const
    {}
};

template <class T, class Request>
concept callable_with = requires(const hot_swap<T>& s, Request r) { s.async_call(std::move(r), ignored()); };

static_assert(callable_with<both, int>);
static_assert(!callable_with<both, std::string>);
static_assert(!callable_with<no_awaitable, int>);
static_assert(!callable_with<int, int>);
static_assert(callable_with<text_function, const char*>);
static_assert(!callable_with<text_function, int*>);
static_assert(callable_with<overloaded, int>);
static_assert(callable_with<overloaded, std::string>);
static_assert(callable_with<decltype(&echo), const char*>);

TEST_SUITE("hot_swap functions")
{
    TEST_CASE("a function runs on the executor of the hot_swap, whatever the handler's is, and never in async_call")
    {
        asio::io_context elsewhere;
        int calls = 0;
        int right = 0;
        asio::io_context* io = nullptr;
        world w([&](std::string text) -> asio::awaitable<result<std::string>> {
            ++calls;
            right += io->get_executor().running_in_this_thread();
            co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
            right += io->get_executor().running_in_this_thread();
            co_return text;
        });
        io = &w.io;
        SUBCASE("use_future")
        {
            auto reply = w.swap.async_call("1", asio::use_future);
            CHECK(calls == 0);
            test::run_until(w.io, [&] { return reply.wait_for(0s) == std::future_status::ready; });
            CHECK(reply.get() == "1");
        }
        SUBCASE("any_completion_handler")
        {
            std::string got;
            asio::any_completion_handler<void(error_code, std::string)> handler =
                [&](error_code, const std::string& reply) { got = reply; };
            w.swap.async_call("1", std::move(handler));
            CHECK(calls == 0);
            test::run_until(w.io, [&] { return !got.empty(); });
            CHECK(got == "1");
        }
        SUBCASE("another execution context, from within a handler")
        {
            std::string got;
            asio::post(w.io, [&] {
                w.swap.async_call("1", asio::bind_executor(elsewhere, [&](error_code, const std::string& reply) {
                                      CHECK(elsewhere.get_executor().running_in_this_thread());
                                      got = reply;
                                  }));
                CHECK(calls == 0);
            });
            test::run_until(w.io, [&] { return right == 2; });
            test::run_until(elsewhere, [&] {
                w.io.poll();
                return !got.empty();
            });
            CHECK(got == "1");
        }
        CHECK(calls == 1);
        CHECK(right == 2);
    }

    TEST_CASE("a request is converted when it is started")
    {
        world w(echo);
        std::string got;
        char text[] = "before";
        w.swap.async_call(static_cast<const char*>(text), [&](error_code, const std::string& reply) { got = reply; });
        std::string("after!").copy(text, 6);
        test::run_until(w.io, [&] { return !got.empty(); });
        CHECK(got == "before");
    }

    TEST_CASE("async_call of a version comes before its call operator")
    {
        asio::io_context io{1};
        auto swap = hot_swap<both>::create(io.get_executor()).value();
        REQUIRE(test::await(io, swap.async_load(just(both()))));
        CHECK(test::await(io, swap.async_call(1)).value() == 1);
    }

    TEST_CASE("an error without a code is an error")
    {
        world w(fail_without_a_code);
        const auto ec = test::await(w.io, w.swap.async_call("1")).error();
        CHECK(ec == errc::no_reply);
        CHECK(ec.message() == "the function: it returned an error without a code");
        CHECK(w.swap.stats().failed == 1);

        auto source = just<text_function>(echo);
        source.warm_up = [](const text_function&) -> asio::awaitable<result<void>> { co_return error_code(); };
        CHECK(test::await(w.io, w.swap.async_load(source)).error() == errc::no_reply);
        source.load = []() -> asio::awaitable<result<text_function>> { co_return error_code(); };
        CHECK(test::await(w.io, w.swap.async_load(source)).error() == errc::no_reply);
        CHECK(w.swap.stats().current == 1);
    }

    TEST_CASE("a function that is destroyed before its end is an error")
    {
        world w(vanish);
        const auto ec = test::await(w.io, w.swap.async_call("1")).error();
        CHECK(ec == errc::no_reply);
        CHECK(ec.message() == "text: the coroutine of the function was destroyed before it ended");
        CHECK(w.swap.stats().versions.front().in_flight == 0);
    }

    TEST_CASE("a request can be cancelled before its function begins")
    {
        world w(wait_forever);
        asio::cancellation_signal signal;
        std::optional<error_code> ended;
        w.swap.async_call(
            "1", asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, const std::string&) { ended = ec; }));
        signal.emit(asio::cancellation_type::terminal);
        test::run_until(w.io, [&] { return ended.has_value(); });
        CHECK(*ended == asio::error::operation_aborted);
    }

    TEST_CASE("requests on several threads are cancelled at any time, and each ends once")
    {
        constexpr int rounds = test::sanitized ? 200 : 2000;
        std::atomic<int> ended{0};
        asio::thread_pool pool(3);
        {
            auto swap = hot_swap<text_function>::create(pool.get_executor()).value();
            const text_function steps = [](std::string text) -> asio::awaitable<result<std::string>> {
                for (int i = 0; i < 3; ++i)
                    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
                co_return text;
            };
            REQUIRE(swap.async_load(just(steps), as_result(asio::use_future)).get());
            for (int i = 0; i < rounds; ++i) {
                // The signal belongs to the strand of the request.
                auto signal = std::make_shared<asio::cancellation_signal>();
                const auto strand = asio::make_strand(pool.get_executor());
                asio::post(strand, [&ended, signal, swap, strand] {
                    swap.async_call(
                        "1", asio::bind_cancellation_slot(
                                 signal->slot(),
                                 asio::bind_executor(strand, [&ended, signal](error_code, std::string) { ++ended; })));
                    asio::post(strand, [signal] { signal->emit(asio::cancellation_type::terminal); });
                });
            }
        }
        pool.join();
        CHECK(ended == rounds);
    }
}

} // namespace test_serve_hot_swap_functions
