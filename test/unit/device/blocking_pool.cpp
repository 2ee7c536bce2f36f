#include "device/blocking_pool.hpp"

#include "support/gate.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <optional>

namespace {

using coaccel::detail::blocking_pool;
using kind = blocking_pool::kind;
namespace asio = boost::asio;

TEST_SUITE_BEGIN("blocking_pool");

TEST_CASE("contexts do not wait for what is being compiled")
{
    // They go when the threads have gone.
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

TEST_CASE("contexts do not wait for each other")
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

TEST_CASE("what was to be compiled when the execution context goes is dropped, and contexts are seen to their end")
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
    // Those two had begun, or had not.
    CHECK(compiled <= 2);
}

TEST_SUITE_END();

} // namespace
