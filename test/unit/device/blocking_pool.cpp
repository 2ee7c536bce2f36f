#include "device/blocking_pool.hpp"

#include "support/gate.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <optional>

namespace test_device_blocking_pool {

namespace {

using coaccel::detail::blocking_pool;
using kind = blocking_pool::kind;
namespace asio = boost::asio;

TEST_SUITE_BEGIN("blocking_pool");

TEST_CASE("context operations do not wait for compilations")
{
    // Declared before io, so that they are destroyed after the threads have ended.
    test::gate compiler;
    test::gate made;
    asio::io_context io;
    auto& pool = asio::use_service<blocking_pool>(io);
    for (int i = 0; i < 8; ++i)
        pool.run(kind::compiling, [&] { compiler.pass(); });
    pool.run(kind::contexts, [&] { made.open(); });
    made.pass();
    compiler.open();
}

TEST_CASE("context operations do not wait for each other")
{
    test::gate others;
    test::gate made;
    asio::io_context io;
    auto& pool = asio::use_service<blocking_pool>(io);
    for (int i = 0; i < 16; ++i)
        pool.run(kind::contexts, [&] { others.pass(); });
    pool.run(kind::contexts, [&] { made.open(); });
    made.pass();
    others.open();
}

TEST_CASE("destroying the execution context drops queued compilations and finishes context operations")
{
    std::optional<asio::io_context> io(std::in_place);
    auto& pool = asio::use_service<blocking_pool>(*io);
    test::gate hold;
    std::atomic<int> compiled = 0;
    std::atomic<int> ended = 0;
    std::atomic<bool> hurried = false;
    for (int i = 0; i < 2; ++i)
        pool.run(
            kind::contexts,
            [&] {
                hold.pass();
                ++ended;
            },
            [&] {
                hurried = true;
                hold.open();
            });
    for (int i = 0; i < 2; ++i)
        pool.run(kind::compiling, [&] {
            hold.pass();
            ++compiled;
        });
    for (int i = 0; i < 10; ++i) {
        pool.run(kind::contexts, [&] { ++ended; });
        pool.run(kind::compiling, [&] { ++compiled; });
    }
    io.reset();
    CHECK(hurried);
    CHECK(ended == 12);
    // The first two may have begun before the shutdown.
    CHECK(compiled <= 2);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_blocking_pool
