#include "failing_memory.hpp"
#include "support/co_run.hpp"
#include "support/devices.hpp"

#include <coaccel/serve/hot_swap.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace test_serve_hot_swap_no_memory {

namespace {

using namespace coaccel;
using swap_type = serve::hot_swap<int>;

serve::version_source<int> source()
{
    serve::version_source<int> s;
    s.name = "a name that is longer than what a string has room for in itself";
    s.load = []() -> asio::awaitable<result<int>> { co_return 1; };
    return s;
}

/// A call that may throw, and what became of its handler.
struct attempt {
    bool thrown = false;
    bool ended = false;
    error_code ec;
    std::shared_ptr<int> alive = std::make_shared<int>();
    asio::cancellation_signal signal;

    auto handler()
    {
        return asio::bind_cancellation_slot(signal.slot(), [this, alive = alive](error_code e, auto&&...) {
            ended = true;
            ec = e;
        });
    }

    /// Calls the function with memory for `n` allocations. False: it has had enough.
    template <class Function>
    bool lacks_memory(std::int64_t n, Function f)
    {
        // No assertions below the limit: they allocate.
        test::allocations_left = n;
        try {
            f();
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        const bool failed = test::allocations_left < 0;
        test::allocations_left = -1;
        if (thrown) {
            CHECK(alive.use_count() == 1);
            // The operation is gone, and so must be what refers to it.
            signal.emit(asio::cancellation_type::terminal);
        }
        return failed;
    }
};

// Not with a strand: one of Asio that gets no memory while it posts never runs anything again.

TEST_SUITE_BEGIN("hot_swap without memory");

TEST_CASE("whichever allocation of async_load fails, nothing has been started, and the next load succeeds")
{
    bool failed = true;
    std::int64_t n = 0;
    for (; failed; ++n) {
        CAPTURE(n);
        asio::io_context io;
        const auto swap = swap_type::create(io.get_executor()).value();
        attempt a;
        auto s = source();
        auto handler = std::make_optional(a.handler());
        failed = a.lacks_memory(n, [&] {
            auto h = std::move(*handler);
            handler.reset();
            swap.async_load(std::move(s), std::move(h));
        });
        if (a.thrown)
            CHECK(swap.stats().versions.empty());
        else
            test::run_until(io, [&] { return a.ended; });
        const auto again = test::await(io, swap.async_load(source()));
        REQUIRE(again);
        CHECK(again.value() == (a.thrown ? 1 : 2));
    }
    CHECK(n > 3);
}

TEST_CASE("whichever allocation of async_shutdown fails, nothing has been stopped, and the next one succeeds")
{
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
        CAPTURE(n);
        asio::io_context io;
        const auto swap = swap_type::create(io.get_executor()).value();
        REQUIRE(test::await(io, swap.async_load(source())));
        REQUIRE(test::await(io, swap.async_load(source())));
        attempt a;
        auto handler = std::make_optional(a.handler());
        failed = a.lacks_memory(n, [&] {
            auto h = std::move(*handler);
            handler.reset();
            swap.async_shutdown(shutdown::drain, std::move(h));
        });
        if (a.thrown)
            CHECK(swap.pick());
        else
            test::run_until(io, [&] { return a.ended; });
        REQUIRE(test::await(io, swap.async_shutdown(shutdown::drain)));
        CHECK(swap.stats().versions.empty());
        test::run_out(io);
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_serve_hot_swap_no_memory
