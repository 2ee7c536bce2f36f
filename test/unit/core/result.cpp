#include <coaccel/core/result.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace test_core_result {

namespace {

using namespace coaccel;

static_assert(std::is_default_constructible_v<result<int>> && std::is_default_constructible_v<result<void>>);
static_assert(std::is_nothrow_move_constructible_v<result<std::unique_ptr<int>>>);
static_assert(!std::is_copy_constructible_v<result<std::unique_ptr<int>>>);
static_assert(std::is_convertible_v<errc, result<int>> && std::is_convertible_v<error_code, result<void>>);

result<int> positive(int x)
{
    if (x <= 0)
        return errc::invalid_argument;
    return x;
}

result<std::string> described(int x)
{
    BOOST_OUTCOME_TRY(auto value, positive(x));
    return std::to_string(value);
}

result<void> checked(int x)
{
    BOOST_OUTCOME_TRYV(positive(x));
    return success();
}

result<std::unique_ptr<int>> boxed(int x)
{
    BOOST_OUTCOME_TRYV(checked(x));
    BOOST_OUTCOME_TRY(const int value, positive(x));
    return std::make_unique<int>(value);
}

asio::awaitable<result<std::unique_ptr<int>>> boxed_later(int x)
{
    co_return boxed(x);
}

asio::awaitable<result<void>> checked_later(int x)
{
    BOOST_OUTCOME_CO_TRYV(checked(x));
    co_return success();
}

asio::awaitable<result<int>> unboxed_later(int x)
{
    BOOST_OUTCOME_CO_TRYV(co_await checked_later(x));
    BOOST_OUTCOME_CO_TRY(auto box, co_await boxed_later(x));
    co_return *box + 1;
}

template <class T>
error_code thrown_by(result<T> r)
{
    try {
        static_cast<void>(std::move(r).value());
    } catch (const boost::system::system_error& e) {
        return e.code();
    }
    return {};
}

template <class T>
T run(asio::awaitable<T> work)
{
    asio::io_context io;
    std::optional<T> out;
    asio::co_spawn(io, std::move(work), [&](std::exception_ptr e, T value) {
        CHECK_FALSE(e);
        out.emplace(std::move(value));
    });
    io.run();
    REQUIRE(out.has_value());
    return std::move(*out);
}

} // namespace

TEST_SUITE_BEGIN("result");

TEST_CASE("a default-constructed result holds no_value")
{
    CHECK(result<int>().error() == errc::no_value);
    CHECK(result<void>().error() == errc::no_value);
    CHECK(result<std::unique_ptr<int>>().error() == errc::no_value);
}

TEST_CASE("a result is made from a value, an errc or an error_code")
{
    const result<int> value = 3;
    CHECK(value.has_value());
    CHECK(value);
    CHECK(value.value() == 3);

    const result<int> ours = errc::stale_ref;
    CHECK(ours.has_error());
    CHECK_FALSE(ours);
    CHECK(ours.error() == errc::stale_ref);

    const result<int> theirs = boost::system::errc::make_error_code(boost::system::errc::io_error);
    CHECK(theirs.error() == boost::system::errc::io_error);

    const result<void> done = success();
    CHECK(done.has_value());
}

TEST_CASE("value() of an error throws system_error with the code")
{
    CHECK(thrown_by(result<int>(errc::queue_full)) == errc::queue_full);
    CHECK(thrown_by(result<void>(errc::closed)) == errc::closed);
    CHECK(thrown_by(result<std::string>()) == errc::no_value);
    CHECK_FALSE(thrown_by(result<int>(1)).failed());
    CHECK_FALSE(thrown_by(result<void>(success())).failed());
}

TEST_CASE("error() of a value throws system_error with no_value")
{
    const result<int> value = 3;
    error_code ec;
    try {
        ec = value.error();
    } catch (const boost::system::system_error& e) {
        ec = e.code();
    }
    CHECK(ec == errc::no_value);
}

TEST_CASE("BOOST_OUTCOME_TRY passes on values and errors")
{
    CHECK(described(7).value() == "7");
    CHECK(described(0).error() == errc::invalid_argument);
    CHECK(checked(1).has_value());
    CHECK(checked(-1).error() == errc::invalid_argument);
    CHECK(*boxed(5).value() == 5);
    CHECK(boxed(0).error() == errc::invalid_argument);
}

TEST_CASE("BOOST_OUTCOME_CO_TRY passes on values and errors in a coroutine")
{
    CHECK(run(unboxed_later(4)).value() == 5);
    CHECK(run(unboxed_later(0)).error() == errc::invalid_argument);
    CHECK(run(checked_later(1)).has_value());
    CHECK(run(checked_later(0)).error() == errc::invalid_argument);
}

TEST_CASE("a result can be moved with a move-only value, and compared with a comparable one")
{
    result<std::unique_ptr<int>> from = std::make_unique<int>(9);
    result<std::unique_ptr<int>> to;
    to = std::move(from);
    CHECK(*to.value() == 9);

    CHECK(result<int>(1) == result<int>(1));
    CHECK(result<int>(1) != result<int>(2));
    CHECK(result<int>(1) != result<int>(errc::closed));
    CHECK(result<int>(errc::closed) == result<int>(errc::closed));
}

TEST_SUITE_END();

} // namespace test_core_result
