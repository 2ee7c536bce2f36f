#ifndef COACCEL_TEST_SUPPORT_DEVICES_HPP
#define COACCEL_TEST_SUPPORT_DEVICES_HPP

#include "support/co_run.hpp"

#include <coaccel/device/device.hpp>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

namespace test {

/// A host device in pool mode, with two threads.
inline coaccel::device_options pool_options()
{
    coaccel::device_options o;
    o.kind = coaccel::device_kind::host;
    o.host.threads = 2;
    o.restart.initial_backoff = std::chrono::milliseconds(1);
    o.context.monitor_interval = std::chrono::milliseconds(5);
    return o;
}

inline coaccel::device_options inline_options()
{
    auto o = pool_options();
    o.host.mode = coaccel::host_mode::inline_;
    return o;
}

inline asio::awaitable<coaccel::result<coaccel::device>> create(coaccel::device_options o)
{
    const auto ex = co_await asio::this_coro::executor;
    co_return co_await coaccel::device::async_create(ex, o);
}

inline coaccel::device make_device(asio::io_context& io, const coaccel::device_options& o = pool_options())
{
    auto made = co_run(io, create(o));
    REQUIRE(made);
    return std::move(made).value();
}

/// Waits for one deferred operation outside any coroutine.
template <class Operation>
auto await(asio::io_context& io, Operation operation)
{
    using result_type = decltype(std::declval<Operation>()(asio::use_future).get());
    std::optional<result_type> value;
    std::move(operation)([&](result_type r) { value = std::move(r); });
    run_until(io, [&] { return value.has_value(); });
    return std::move(*value);
}

} // namespace test

#endif
