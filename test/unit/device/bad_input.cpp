#include "support/devices.hpp"

#include <coaccel/device/system_info.hpp>
#include <coaccel/ops/blas.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <vector>

namespace test_device_bad_input {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

constexpr auto huge = std::numeric_limits<std::size_t>::max();

TEST_SUITE_BEGIN("bad input");

TEST_CASE("sizes that are zero, absurd or overflowing are refused")
{
    asio::io_context io;
    auto gpu = make_device(io);
    CHECK(await(io, gpu.async_alloc<float>(0)).error() == errc::invalid_argument);
    CHECK(await(io, gpu.async_alloc<float>(huge)).error() == errc::size_overflow);
    CHECK(await(io, gpu.async_alloc<float>(huge / 4)).error() == errc::size_overflow);
    CHECK(await(io, gpu.async_alloc<float>(huge / 16)).error() == errc::out_of_memory);
    CHECK(await(io, gpu.async_upload(std::vector<float>())).error() == errc::invalid_argument);
    CHECK(await(io, gpu.async_download(ref<float>())).error() == errc::invalid_argument);
    auto x = await(io, gpu.async_alloc<float>(16)).value();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x.subspan(3, 0), 1.0f})).error() == errc::invalid_argument);
    CHECK(await(io, gpu.async_download(x.subspan(10, huge))).error() == errc::out_of_bounds);
    CHECK(await(io, gpu.async_stats()).value().live_buffers == 1);
}

TEST_CASE("spans of the wrong length are refused")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    std::vector<float> data(5);
    CHECK(await(io, gpu.async_write(x, data)).error() == errc::length_mismatch);
    CHECK(await(io, gpu.async_read(x, data)).error() == errc::length_mismatch);
    CHECK(await(io, gpu.async_write(x, {})).error() == errc::invalid_argument);
}

TEST_CASE("gemm refuses matrices that do not fit")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto a = await(io, gpu.async_alloc<float>(12)).value();
    auto b = await(io, gpu.async_alloc<float>(12)).value();
    auto c = await(io, gpu.async_alloc<float>(12)).value();
    const blas::gemm<float> good{.a = a, .b = b, .c = c, .m = 3, .n = 4, .k = 3};
    CHECK(await(io, gpu.async_exec(good)));
    struct bad {
        errc expected;
        std::function<void(blas::gemm<float>&)> change;
    };
    const bad table[] = {
        {errc::invalid_argument, [](auto& g) { g.m = 0; }},
        {errc::invalid_argument, [](auto& g) { g.trans_a = static_cast<blas::transpose>(7); }},
        {errc::size_overflow, [](auto& g) { g.m = g.n = g.k = huge / 2; }},
        {errc::out_of_bounds, [](auto& g) { g.m = 5; }},
        {errc::leading_dimension, [](auto& g) { g.lda = 2; }},
        {errc::leading_dimension, [](auto& g) { g.ldc = 1; }},
        {errc::out_of_bounds, [](auto& g) { g.ldb = 1000; }},
        {errc::size_overflow, [](auto& g) { g.ldb = huge; }},
        {errc::overlap, [&](auto& g) { g.c = a; }},
        {errc::out_of_bounds, [](auto& g) { g.b = ref<float>(); }},
    };
    for (const auto& t : table) {
        auto g = good;
        t.change(g);
        const auto outcome = await(io, gpu.async_exec(g));
        REQUIRE_FALSE(outcome);
        CHECK(outcome.error() == t.expected);
        CHECK(is_caller_error(outcome.error()));
    }
    CHECK(await(io, gpu.async_exec(good)));
}

TEST_CASE("refs to a released buffer, of another type or with an unknown slot are refused")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    const auto dangling = x.ref();
    x.reset();
    auto y = await(io, gpu.async_alloc<float>(4)).value();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{dangling, 1.0f})).error() == errc::released_ref);
    CHECK(await(io, gpu.async_download(ref<double>::from_raw(y.ref().raw()))).error() == errc::wrong_dtype);
    any_ref nowhere = y.ref().raw();
    nowhere.slot = 12345;
    CHECK(await(io, gpu.async_download(ref<float>::from_raw(nowhere))).error() == errc::out_of_bounds);
}

TEST_CASE("the error for an option out of range names the option")
{
    struct row {
        const char* name;
        std::function<void(device_options&)> change;
    };
    const row table[] = {
        {"ordinal is -1; it must not be negative", [](auto& o) { o.ordinal = -1; }},
        {"kind is 99; it must be one of its enumerators", [](auto& o) { o.kind = static_cast<device_kind>(99); }},
        {"standby is 5; it must be from 0 to 4", [](auto& o) { o.standby = 5; }},
        {"standby is 1; it must be 0 unless isolation is worker", [](auto& o) { o.standby = 1; }},
        {"plugin is an empty text", [](auto& o) { o.plugin = ""; }},
        {"host.threads is -1; it must be from 0 to 1024", [](auto& o) { o.host.threads = -1; }},
        {"host.mode", [](auto& o) { o.host.mode = static_cast<host_mode>(9); }},
        {"host.faults.delay is -1 s; it must not be negative", [](auto& o) { o.host.faults.delay = -1s; }},
        {"max_restarts", [](auto& o) { o.restart.max_restarts = -1; }},
        {"initial_backoff", [](auto& o) { o.restart.initial_backoff = -1s; }},
        {"restart_policy::jitter is 2; it must be from 0 to 1", [](auto& o) { o.restart.jitter = 2; }},
        {"restart_policy::decider is null", [](auto& o) { o.restart.decider = nullptr; }},
        {"context.lanes.count is 0; it must be from 1 to 8", [](auto& o) { o.context.lanes = lane_policy::pooled(0); }},
        {"context.lanes.count", [](auto& o) { o.context.lanes = lane_policy::pooled(1000); }},
        {"context.lanes.count", [](auto& o) { o.context.lanes = lane_policy::chained(9); }},
        {"context.spin_budget", [](auto& o) { o.context.spin_budget = -1ns; }},
        {"context.monitor_interval is 0; it must be above zero", [](auto& o) { o.context.monitor_interval = 0ns; }},
        {"context.hang_timeout", [](auto& o) { o.context.hang_timeout = -1ns; }},
        {"context.completion", [](auto& o) { o.context.completion = static_cast<completion>(9); }},
        {"queue.max_in_flight is 0; it must be above zero", [](auto& o) { o.queue.max_in_flight = 0; }},
        {"queue.max_queued", [](auto& o) { o.queue.max_queued = 0; }},
        {"host.faults",
         [](auto& o) {
             o.host.mode = host_mode::inline_;
             o.host.faults.hang_at = 1;
         }},
    };
    for (const row& r : table) {
        auto o = test::pool_options();
        r.change(o);
        asio::io_context io;
        const auto refused = test::co_run(io, test::create(o)).error();
        CHECK(refused == errc::invalid_option);
        CHECK_MESSAGE(refused.message().find(r.name) != std::string::npos, refused.message());
        test::run_out(io);
    }
}

TEST_CASE("a missing GPU is an error with a reason, and the best device is then the CPU")
{
    if (!inspect_system().gpus.empty())
        return;
    asio::io_context io;
    auto o = test::pool_options();
    o.kind = device_kind::cuda;
    const auto none = test::co_run(io, test::create(o));
    REQUIRE_FALSE(none);
    CHECK((is_device_lost(none.error()) || none.error() == errc::library_missing));
    CHECK_FALSE(none.error().message().empty());
    o.kind = device_kind::best;
    auto best = test::make_device(io, o);
    CHECK(test::await(io, best.async_stats()).value().backend == "host");
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_bad_input
