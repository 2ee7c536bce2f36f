#ifndef COACCEL_TEST_SUPPORT_CO_RUN_HPP
#define COACCEL_TEST_SUPPORT_CO_RUN_HPP

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace test {

namespace asio = boost::asio;

// Much longer than any test needs, so that only a hang reaches it.
inline constexpr auto patience = std::chrono::seconds(60);

/// Runs io until the condition holds; fails the test if that takes too long.
template <class Condition>
void run_until(asio::io_context& io, Condition condition)
{
    io.restart();
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition() && std::chrono::steady_clock::now() < end)
        io.run_one_for(std::chrono::milliseconds(1));
    REQUIRE_MESSAGE(condition(), "the condition never held");
}

/// Runs the coroutine on io until it ends; fails the test if it hangs.
template <class T>
T co_run(asio::io_context& io, asio::awaitable<T> work)
{
    std::optional<T> value;
    std::exception_ptr thrown;
    asio::co_spawn(io, std::move(work), [&](std::exception_ptr e, T v) {
        thrown = e;
        value = std::move(v);
    });
    run_until(io, [&] { return value.has_value(); });
    if (thrown)
        std::rethrow_exception(thrown);
    return std::move(*value);
}

inline void co_run(asio::io_context& io, asio::awaitable<void> work)
{
    bool ended = false;
    std::exception_ptr thrown;
    asio::co_spawn(io, std::move(work), [&](std::exception_ptr e) {
        thrown = e;
        ended = true;
    });
    run_until(io, [&] { return ended; });
    if (thrown)
        std::rethrow_exception(thrown);
}

/// Runs the remaining work on io; fails the test if it does not end.
inline void run_out(asio::io_context& io)
{
    io.restart();
    io.run_for(patience);
    CHECK_MESSAGE(io.stopped(), "work was left on the io_context");
}

} // namespace test

#endif
