#include <coaccel/core/as_result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace test_core_as_result {

namespace {

using namespace coaccel;
using executor = asio::io_context::executor_type;

template <class T>
struct tagged_allocator {
    using value_type = T;

    int tag = 0;

    tagged_allocator() = default;
    explicit tagged_allocator(int t) : tag(t) {}
    template <class U>
    tagged_allocator(const tagged_allocator<U>& other) : tag(other.tag)
    {}

    T* allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
    void deallocate(T* p, std::size_t n) { std::allocator<T>().deallocate(p, n); }
    bool operator==(const tagged_allocator&) const = default;
};

/// The associated objects that an initiating function finds on its handler.
struct associations {
    std::optional<asio::any_io_executor> executor;
    int allocator_tag = 0;
    bool has_slot = false;
};

/// Completes from the io_context, with the arguments it was given.
struct completion {
    using executor_type = executor;

    executor ex;
    associations* seen;

    executor_type get_executor() const noexcept { return ex; }

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const
    {
        if (seen) {
            seen->executor = asio::get_associated_executor(handler, ex);
            const auto allocator = asio::get_associated_allocator(handler, tagged_allocator<void>{});
            if constexpr (requires { allocator.tag; })
                seen->allocator_tag = allocator.tag;
            seen->has_slot = asio::get_associated_cancellation_slot(handler).is_connected();
        }
        const auto target = asio::get_associated_executor(handler, ex);
        asio::post(target, [h = std::decay_t<Handler>(std::forward<Handler>(handler)),
                            values = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)]() mutable {
            std::apply(std::move(h), std::move(values));
        });
    }
};

template <class Signature, class Token = default_token, class... Args>
auto async_complete(executor ex, std::tuple<Args...> args, Token&& token = {}, associations* seen = nullptr)
{
    return std::apply(
        [&](auto&... values) {
            return asio::async_initiate<Token, Signature>(completion{ex, seen}, token, std::move(values)...);
        },
        args);
}

using none = void(error_code);
using one = void(error_code, std::string);
using two = void(error_code, std::string, int);
using moved = void(error_code, std::unique_ptr<int>);
using counted = void(error_code, std::size_t);

const error_code ok;
const error_code full = errc::queue_full;

static_assert(asio::completion_token_for<default_token, none>);
static_assert(asio::completion_token_for<default_token, two>);
static_assert(asio::completion_token_for<as_result_t<asio::use_awaitable_t<>>, one>);
static_assert(std::is_trivially_copyable_v<default_token>);

template <class Signature, class Reply, class Token, class... Args>
asio::awaitable<Reply> awaited(executor ex, Token token, error_code ec, Args... args)
{
    auto reply = co_await async_complete<Signature>(ex, std::tuple{ec, std::move(args)...}, token);
    static_assert(std::is_same_v<decltype(reply), Reply>);
    co_return reply;
}

asio::awaitable<result<std::size_t>> length_of(executor ex, error_code ec, std::string text)
{
    BOOST_OUTCOME_CO_TRYV(co_await async_complete<none>(ex, std::tuple{ok}));
    BOOST_OUTCOME_CO_TRY(auto reply, co_await async_complete<one>(ex, std::tuple{ec, std::move(text)}));
    co_return reply.size();
}

asio::awaitable<result<int>> unboxed(executor ex, std::unique_ptr<int> box)
{
    BOOST_OUTCOME_CO_TRY(auto reply, co_await async_complete<moved>(ex, std::tuple{ok, std::move(box)}));
    co_return *reply;
}

// A promise's handler may run on the system executor, so it may complete after io_context::run() has returned.
template <class T>
T get(std::future<T>& future)
{
    REQUIRE(future.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
    return future.get();
}

template <class T>
T run(asio::io_context& io, asio::awaitable<T> work)
{
    auto reply = asio::co_spawn(io, std::move(work), asio::use_future);
    io.restart();
    io.run();
    return get(reply);
}

template <class Token>
associations associations_of(executor ex, Token&& token)
{
    associations seen;
    static_cast<void>(async_complete<one>(ex, std::tuple{ok, std::string("x")}, std::forward<Token>(token), &seen));
    return seen;
}

} // namespace

TEST_SUITE_BEGIN("as_result");

TEST_CASE_TEMPLATE("awaiting yields a result and does not throw", Token, default_token,
                   as_result_t<asio::use_awaitable_t<>>)
{
    using pair = std::tuple<std::string, int>;
    asio::io_context io;
    const auto ex = io.get_executor();
    const Token token{};
    const std::string text = "a";
    CHECK(run(io, awaited<none, result<void>>(ex, token, ok)).has_value());
    CHECK(run(io, awaited<none, result<void>>(ex, token, full)).error() == errc::queue_full);
    CHECK(run(io, awaited<one, result<std::string>>(ex, token, ok, text)).value() == "a");
    CHECK(run(io, awaited<one, result<std::string>>(ex, token, full, text)).error() == errc::queue_full);
    CHECK(run(io, awaited<two, result<pair>>(ex, token, ok, text, 2)).value() == pair("a", 2));
    CHECK(run(io, awaited<two, result<pair>>(ex, token, full, text, 2)).error() == errc::queue_full);
}

TEST_CASE("BOOST_OUTCOME_CO_TRY takes an awaited result")
{
    asio::io_context io;
    CHECK(run(io, length_of(io.get_executor(), ok, "abc")).value() == 3);
    CHECK(run(io, length_of(io.get_executor(), full, "abc")).error() == errc::queue_full);
}

TEST_CASE("use_future holds a result")
{
    asio::io_context io;
    const auto ex = io.get_executor();
    auto nothing = async_complete<none>(ex, std::tuple{full}, as_result(asio::use_future));
    auto text = async_complete<one>(ex, std::tuple{ok, std::string("a")}, as_result(asio::use_future));
    auto both = async_complete<two>(ex, std::tuple{ok, std::string("b"), 2}, as_result(asio::use_future));
    static_assert(std::is_same_v<decltype(nothing), std::future<result<void>>>);
    static_assert(std::is_same_v<decltype(text), std::future<result<std::string>>>);
    io.run();
    CHECK(get(nothing).error() == errc::queue_full);
    CHECK(get(text).value() == "a");
    CHECK(std::get<0>(get(both).value()) == "b");
}

TEST_CASE("a callback is called once, not inside the initiating function")
{
    asio::io_context io;
    int calls = 0;
    async_complete<none>(io.get_executor(), std::tuple{ok}, as_result([&](result<void> r) {
                             CHECK(r.has_value());
                             ++calls;
                         }));
    async_complete<two>(io.get_executor(), std::tuple{full, std::string("b"), 2},
                        as_result([&](result<std::tuple<std::string, int>> r) {
                            CHECK(r.error() == errc::queue_full);
                            ++calls;
                        }));
    CHECK(calls == 0);
    io.run();
    CHECK(calls == 2);
}

TEST_CASE("handlers and values need only be movable")
{
    asio::io_context io;
    int sum = 0;
    async_complete<moved>(io.get_executor(), std::tuple{ok, std::make_unique<int>(4)},
                          as_result([&sum, mine = std::make_unique<int>(3)](result<std::unique_ptr<int>> r) {
                              sum = *mine + *r.value();
                          }));
    io.run();
    CHECK(sum == 7);
    CHECK(run(io, unboxed(io.get_executor(), std::make_unique<int>(4))).value() == 4);
}

TEST_CASE("the signature has the result's type, whatever the signature of the operation")
{
    asio::io_context io;
    int calls = 0;
    async_complete<counted>(io.get_executor(), std::tuple{ok, 5}, as_result([&](auto r) {
                                static_assert(std::is_same_v<decltype(r), result<std::size_t>>);
                                CHECK(r.value() == 5);
                                ++calls;
                            }));
    async_complete<one>(io.get_executor(), std::tuple{ok, "text"}, as_result([&](auto r) {
                            static_assert(std::is_same_v<decltype(r), result<std::string>>);
                            CHECK(r.value() == "text");
                            ++calls;
                        }));
    io.run();
    CHECK(calls == 2);
}

TEST_CASE("a token that is an lvalue stays usable")
{
    asio::io_context io;
    const auto count = std::make_shared<int>(0);
    auto token = as_result([count](result<void>) { ++*count; });
    const auto fixed = token;
    async_complete<none>(io.get_executor(), std::tuple{ok}, token);
    async_complete<none>(io.get_executor(), std::tuple{ok}, token);
    async_complete<none>(io.get_executor(), std::tuple{ok}, fixed);
    io.run();
    CHECK(*count == 3);
}

TEST_CASE("a deferred operation starts when it is called, with any token, and again when copied")
{
    asio::io_context io;
    int calls = 0;
    const auto callback = [&](result<std::string> r) {
        CHECK(r.value() == "a");
        ++calls;
    };
    const auto op = async_complete<one>(io.get_executor(), std::tuple{ok, std::string("a")});
    io.run();
    io.restart();
    op(callback);
    auto copy = op;
    std::move(copy)(callback);
    auto future = op(asio::use_future);
    CHECK(calls == 0);
    io.run();
    CHECK(calls == 2);
    CHECK(get(future).value() == "a");
}

TEST_CASE("the handler's executor, allocator and cancellation slot are those of the inner token")
{
    asio::io_context io;
    const auto ex = io.get_executor();
    const auto strand = asio::make_strand(ex);
    asio::cancellation_signal signal;
    const tagged_allocator<void> allocator{7};
    const auto callback = [](result<std::string>) {};

    const auto plain = associations_of(ex, as_result(callback));
    CHECK(plain.executor == asio::any_io_executor(ex));
    CHECK(plain.allocator_tag == 0);
    CHECK_FALSE(plain.has_slot);

    const auto bound = associations_of(
        ex, as_result(asio::bind_executor(
                strand, asio::bind_allocator(allocator, asio::bind_cancellation_slot(signal.slot(), callback)))));
    CHECK(bound.executor == asio::any_io_executor(strand));
    CHECK(bound.allocator_tag == 7);
    CHECK(bound.has_slot);

    const auto outside = associations_of(
        ex, asio::bind_executor(strand, asio::bind_allocator(allocator, asio::bind_cancellation_slot(
                                                                            signal.slot(), as_result(callback)))));
    CHECK(outside.executor == asio::any_io_executor(strand));
    CHECK(outside.allocator_tag == 7);
    CHECK(outside.has_slot);
    io.run();
}

TEST_CASE("binders around the default token reach the operation when it starts")
{
    asio::io_context io;
    const auto ex = io.get_executor();
    asio::cancellation_signal signal;
    associations seen;
    int calls = 0;
    const auto callback = [&](result<std::string> r) {
        CHECK(r.value() == "a");
        ++calls;
    };
    const std::tuple args{ok, std::string("a")};
    async_complete<one>(ex, args, asio::bind_cancellation_slot(signal.slot(), default_token{}), &seen)(callback);
    CHECK(seen.has_slot);
    async_complete<one>(ex, args, asio::bind_allocator(tagged_allocator<void>{7}, default_token{}), &seen)(callback);
    CHECK(seen.allocator_tag == 7);
    io.run();
    CHECK(calls == 2);
}

TEST_CASE("bound handlers run on their executor")
{
    asio::io_context io;
    const auto strand = asio::make_strand(io.get_executor());
    int calls = 0;
    const auto check = [&](result<std::string> r) {
        CHECK(strand.running_in_this_thread());
        CHECK(r.value() == "a");
        ++calls;
    };
    const std::tuple args{ok, std::string("a")};
    async_complete<one>(io.get_executor(), args, as_result(asio::bind_executor(strand, check)));
    async_complete<one>(io.get_executor(), args, asio::bind_executor(strand, as_result(check)));
    async_complete<one>(io.get_executor(), args, as_result(asio::deferred))(asio::bind_executor(strand, check));
    async_complete<one>(io.get_executor(), args, asio::bind_executor(strand, as_result(asio::deferred)))(check);
    async_complete<one>(io.get_executor(), args, as_result(asio::bind_executor(strand, asio::deferred)))(check);
    io.run();
    CHECK(calls == 5);
}

TEST_CASE("a coroutine's own executor and slot reach the operation")
{
    asio::io_context io;
    const auto strand = asio::make_strand(io.get_executor());
    asio::cancellation_signal signal;
    associations seen;
    bool finished = false;
    const auto work = [&]() -> asio::awaitable<void> {
        static_cast<void>(co_await async_complete<none>(io.get_executor(), std::tuple{ok}, default_token{}, &seen));
        CHECK(strand.running_in_this_thread());
    };
    asio::co_spawn(strand, work(),
                   asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { finished = !e; }));
    io.run();
    CHECK(finished);
    REQUIRE(seen.executor.has_value());
    CHECK(*seen.executor == asio::any_io_executor(strand));
    CHECK(seen.has_slot);
}

TEST_SUITE_END();

} // namespace test_core_as_result
