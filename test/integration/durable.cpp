#include "inventory.hpp"
#include "isolated.hpp"
#include "ready_workers.hpp"
#include "shared_mappings.hpp"
#include "support/forked_child.hpp"
#include "support/sanitized.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <sys/resource.h>

namespace test_integration_durable {

// Buffers that outlive the workers of their device.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::held;
using test::numbers;

constexpr std::size_t n = 1000;

device_options options(int standby = 0)
{
    auto o = test::isolated_options();
    o.standby = standby;
    o.restart.initial_backoff = o.restart.max_backoff = 1ms;
    return o;
}

struct fixture : test::isolated_fixture {
    explicit fixture(const device_options& o = options()) : isolated_fixture(o) {}

    template <class T>
    durable_buffer<T> durable(std::size_t count)
    {
        auto made = await(io, gpu.async_alloc_durable<T>(count));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    template <class T>
    void write(const durable_buffer<T>& to, const std::vector<T>& data)
    {
        const auto done = await(io, gpu.async_write(to.ref(), data));
        REQUIRE_MESSAGE(done, done.error().message());
    }

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    /// Ends the worker from outside, and waits for the next one.
    void lose()
    {
        const generation next = gpu.status().generation + 1;
        send(SIGKILL);
        wait_for_generation(next);
    }

    /// Lets the next op end the context, as a faulting kernel does.
    void fault(fault_injector& faults)
    {
        const generation next = gpu.status().generation + 1;
        faults.poison();
        CHECK(run(memory::fill<float>{alloc<float>(1), 0.0f}) == errc::context_lost);
        wait_for_generation(next);
    }

    /// Starts an op that is on the worker until the worker is killed.
    template <class Op>
    void start_and_kill(const Op& op)
    {
        const generation next = gpu.status().generation + 1;
        const int worker = process();
        REQUIRE(::kill(worker, SIGSTOP) == 0);
        std::optional<error_code> ended;
        gpu.async_exec(op, [&](error_code ec) { ended = ec; });
        test::run_until(io, [&] { return gpu.status().state == device_state::busy || stats().in_flight == 1; });
        REQUIRE(::kill(worker, SIGKILL) == 0);
        test::run_until(io, [&] { return ended.has_value(); });
        CHECK(*ended == errc::context_lost);
        wait_for_generation(next);
    }

    /// Kills the worker and its standbys at once.
    void kill_all()
    {
        const int first = process();
        for (const int other : test::ready_besides(first))
            REQUIRE(::kill(other, SIGKILL) == 0);
        REQUIRE(::kill(first, SIGKILL) == 0);
    }

    error_code read_error(const durable_buffer<float>& b)
    {
        const auto got = await(io, gpu.async_download(b.ref()));
        return got ? error_code() : got.error();
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated durable buffers");

TEST_CASE("a durable buffer begins with zeros, and every kind of op can use it")
{
    fixture f;
    const auto d = f.durable<float>(n);
    CHECK(d);
    CHECK(d.size() == n);
    CHECK_FALSE(d.suspect());
    CHECK(f.download(d.ref()) == std::vector<float>(n, 0.0f));
    const auto x = f.upload(numbers(n));
    CHECK_FALSE(f.run(blas::axpy<float>{.x = x, .y = d, .n = n, .alpha = 2}));
    CHECK_FALSE(f.run(memory::copy<float>{d.subspan(0, 10), d.subspan(10, 10)}));
    CHECK(await(f.io, f.gpu.async_exec(seq(blas::scal<float>{.x = d, .n = n, .alpha = 0.5f},
                                           memory::fill<float>{d.subspan(n - 1, 1), -1.0f}))));
    auto right = numbers(n);
    std::copy_n(right.begin(), 10, right.begin() + 10);
    right.back() = -1;
    CHECK(f.download(d.ref()) == right);
}

TEST_CASE("the content and the refs survive the end of the worker")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        fixture f(options(standby));
        const auto d = f.durable<float>(n);
        const auto other = f.durable<std::int32_t>(3);
        const ref<float> early = d;
        f.write(d, numbers(n));
        f.write(other, {1, 2, 3});
        const auto ordinary = f.upload(numbers(n));
        for (int i = 0; i < 5; ++i) {
            f.lose();
            CHECK_FALSE(d.suspect());
            CHECK(f.download(early) == numbers(n));
            CHECK(f.download(other.ref()) == std::vector<std::int32_t>{1, 2, 3});
            CHECK(f.run(memory::fill<float>{ordinary, 1.0f}) == errc::stale_ref);
        }
        f.kill_all();
        f.wait_for_generation(7);
        CHECK(f.download(early) == numbers(n));
        CHECK(f.stats().live_buffers == 2);
    }
}

TEST_CASE("a counter is exact over 100 losses")
{
    fixture f(options(1));
    const auto counter = f.durable<float>(1);
    const auto add_one = [&] {
        // The other operand ends with each worker.
        const auto one = f.upload(std::vector<float>{1});
        return f.run(blas::axpy<float>{.x = one, .y = counter, .n = 1, .alpha = 1});
    };
    for (int i = 1; i <= 100; ++i) {
        CAPTURE(i);
        REQUIRE_FALSE(add_one());
        f.lose();
        REQUIRE(f.download(counter.ref()) == std::vector<float>{static_cast<float>(i)});
    }
    CHECK(f.stats().restarts == 100);
}

TEST_CASE("after a fault every durable buffer is suspect until its user decides")
{
    fault_injector faults;
    auto o = options();
    o.host.injector = &faults;
    fixture f(o);
    const auto kept = f.durable<float>(n), cleared = f.durable<float>(n);
    f.write(kept, numbers(n));
    f.write(cleared, numbers(n));
    f.fault(faults);
    CHECK(kept.suspect());
    CHECK(cleared.suspect());
    CHECK(f.stats().suspect_buffers == 2);
    const auto refused = f.run(blas::scal<float>{.x = kept, .n = n, .alpha = 2});
    CHECK(refused == errc::buffer_suspect);
    CHECK(refused == fault::stopped);
    CHECK(refused.message().find("blas.scal: x is durable buffer 1 of 1000 elements of type f32") == 0);
    CHECK(f.read_error(cleared) == errc::buffer_suspect);
    // Another op of the request is not started either.
    const auto y = f.upload(numbers(n));
    const auto both = await(f.io, f.gpu.async_exec(seq(memory::fill<float>{y, 1.0f}, memory::copy<float>{y, kept})));
    CHECK(both.error() == errc::buffer_suspect);
    CHECK(both.error().message().find("memory.copy, second of seq: dst is durable buffer 1") == 0);
    CHECK(f.download(y.ref()) == numbers(n));

    CHECK(await(f.io, f.gpu.async_trust(kept)));
    CHECK_FALSE(kept.suspect());
    CHECK(f.download(kept.ref()) == numbers(n));
    CHECK(f.stats().suspect_buffers == 1);

    // Ops that are started after it need not wait for it.
    std::optional<error_code> clear, fill;
    f.gpu.async_clear(cleared, [&](error_code ec) { clear = ec; });
    f.gpu.async_exec(memory::fill<float>{cleared.subspan(0, 1), 5.0f}, [&](error_code ec) { fill = ec; });
    test::run_until(f.io, [&] { return clear && fill; });
    CHECK_FALSE(*clear);
    CHECK_FALSE(*fill);
    std::vector<float> right(n, 0.0f);
    right[0] = 5;
    CHECK(f.download(cleared.ref()) == right);
    CHECK(f.stats().suspect_buffers == 0);
    // A worker that is killed later changes nothing.
    f.lose();
    CHECK(f.download(kept.ref()) == numbers(n));
    CHECK(f.download(cleared.ref()) == right);
}

TEST_CASE("after an end from outside only buffers with unfinished writers are suspect")
{
    fixture f;
    const auto read = f.durable<float>(n), written = f.durable<float>(n), idle = f.durable<float>(n);
    f.write(read, numbers(n));
    f.start_and_kill(memory::copy<float>{read, written});
    CHECK_FALSE(read.suspect());
    CHECK_FALSE(idle.suspect());
    CHECK(written.suspect());
    CHECK(f.download(read.ref()) == numbers(n));
    CHECK(f.read_error(written) == errc::buffer_suspect);
    CHECK(await(f.io, f.gpu.async_clear(written)));
    CHECK(f.download(written.ref()) == std::vector<float>(n, 0.0f));
}

TEST_CASE("a buffer can be trusted while the device has no context")
{
    auto o = options();
    o.restart.max_restarts = 0;
    fixture f(o);
    const auto d = f.durable<float>(n);
    f.write(d, numbers(n));
    const int worker = f.process();
    REQUIRE(::kill(worker, SIGSTOP) == 0);
    std::optional<error_code> ended;
    f.gpu.async_exec(memory::fill<float>{d, 1.0f}, [&](error_code ec) { ended = ec; });
    test::run_until(f.io, [&] { return f.stats().in_flight == 1; });
    REQUIRE(::kill(worker, SIGKILL) == 0);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(d.suspect());
    CHECK(f.read_error(d) == errc::device_failed);
    CHECK(await(f.io, f.gpu.async_trust(d)));
    CHECK(held() == 1);
    CHECK(f.stats().memory.shared == n * sizeof(float));
    REQUIRE(await(f.io, f.gpu.async_revive()));
    // The op was never run: its worker stood still.
    CHECK(f.download(d.ref()) == numbers(n));
}

TEST_CASE("a replacement of the context keeps the buffers")
{
    fixture f;
    const auto d = f.durable<float>(n);
    f.write(d, numbers(n));
    for (int i = 0; i < 3; ++i) {
        REQUIRE(await(f.io, f.gpu.async_replace()));
        CHECK_FALSE(d.suspect());
        CHECK(f.download(d.ref()) == numbers(n));
    }
    CHECK(f.stats().generation == 4);
}

TEST_CASE("an idempotent op on durable buffers is repeated after a loss, unless it writes them")
{
    fixture f;
    const auto d = f.durable<float>(n);
    f.write(d, numbers(n));
    const int worker = f.process();
    REQUIRE(::kill(worker, SIGSTOP) == 0);
    std::optional<error_code> read, written;
    std::vector<float> got;
    const auto e = f.gpu.with({.retry = retry::idempotent});
    SUBCASE("reader")
    {
        e.async_download(d.ref(), [&](error_code ec, std::vector<float> v) {
            read = ec;
            got = std::move(v);
        });
        test::run_until(f.io, [&] { return f.stats().in_flight == 1; });
        REQUIRE(::kill(worker, SIGKILL) == 0);
        test::run_until(f.io, [&] { return read.has_value(); });
        CHECK_FALSE(*read);
        CHECK(got == numbers(n));
    }
    SUBCASE("writer")
    {
        e.async_exec(memory::fill<float>{d, 1.0f}, [&](error_code ec) { written = ec; });
        test::run_until(f.io, [&] { return f.stats().in_flight == 1; });
        REQUIRE(::kill(worker, SIGKILL) == 0);
        test::run_until(f.io, [&] { return written.has_value(); });
        CHECK(*written == errc::buffer_suspect);
    }
}

TEST_CASE("the memory is counted once and freed with the last handle")
{
    {
        const fixture once;
    }
    const auto before = test::inventory::take();
    {
        fixture f(options(1));
        auto d = f.durable<float>(n), e = f.durable<float>(2 * n);
        CHECK(held() == 2);
        CHECK(f.stats().memory.shared == 3 * n * sizeof(float));
        f.lose();
        CHECK(held() == 2);
        CHECK(f.stats().memory.shared == 3 * n * sizeof(float));
        const ref<float> old = d;
        d.reset();
        CHECK_FALSE(d);
        test::run_until(f.io, [&] { return held() == 1; });
        CHECK(f.stats().memory.shared == 2 * n * sizeof(float));
        CHECK(f.run(memory::fill<float>{old, 1.0f}) == errc::released_ref);
        // Another one is not mistaken for it.
        const auto next = f.durable<float>(n);
        CHECK(f.run(memory::fill<float>{old, 1.0f}) == errc::released_ref);
        CHECK(f.stats().live_buffers == 2);
    }
    CHECK(test::inventory::take_expecting(before) == before);
    CHECK(test::childless());
}

TEST_CASE("a buffer that is dropped while ops use it is freed after them")
{
    fixture f;
    auto d = f.durable<float>(n);
    f.write(d, numbers(n));
    std::optional<result<std::vector<float>>> got;
    std::optional<error_code> filled;
    f.gpu.async_exec(memory::fill<float>{d, 3.0f}, [&](error_code ec) { filled = ec; });
    f.gpu.async_download(d.ref(), [&](error_code ec, std::vector<float> v) {
        got = ec ? result<std::vector<float>>(ec) : result<std::vector<float>>(std::move(v));
    });
    d.reset();
    test::run_until(f.io, [&] { return got && filled; });
    CHECK_FALSE(*filled);
    REQUIRE(*got);
    CHECK(got->value() == std::vector<float>(n, 3.0f));
    test::run_until(f.io, [&] { return held() == 0; });
    CHECK(f.stats().memory.shared == 0);
}

TEST_CASE("a buffer that is dropped while the device has no context is freed after the ops that wait")
{
    auto o = options();
    o.restart.initial_backoff = o.restart.max_backoff = 300ms;
    fixture f(o);
    auto d = f.durable<float>(n);
    f.write(d, numbers(n));
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::rebuilding; });
    std::optional<result<std::vector<float>>> got;
    f.gpu.async_download(d.ref(), [&](error_code ec, std::vector<float> v) {
        got = ec ? result<std::vector<float>>(ec) : result<std::vector<float>>(std::move(v));
    });
    d.reset();
    test::run_until(f.io, [&] { return got.has_value(); });
    REQUIRE_MESSAGE(*got, got->error().message());
    CHECK(got->value() == numbers(n));
    test::run_until(f.io, [&] { return held() == 0; });
}

TEST_CASE("memory is freed although all workers are dead")
{
    auto o = options(1);
    o.restart.max_restarts = 0;
    fixture f(o);
    auto d = f.durable<float>(n), e = f.durable<float>(n);
    f.kill_all();
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(held() == 2);
    d.reset();
    test::run_until(f.io, [&] { return held() == 1; });
    CHECK(f.stats().memory.shared == n * sizeof(float));
    const auto refused = await(f.io, f.gpu.async_alloc_durable<float>(n));
    CHECK(refused.error() == errc::device_failed);
}

TEST_CASE("a device that has stopped has freed its buffers")
{
    durable_buffer<float> kept;
    fixture f;
    kept = f.durable<float>(n);
    REQUIRE(await(f.io, f.gpu.async_shutdown()));
    CHECK(held() == 0);
    CHECK(f.read_error(kept) == errc::device_stopped);
    CHECK(await(f.io, f.gpu.async_trust(kept)).error() == errc::device_stopped);
    CHECK(await(f.io, f.gpu.async_clear(kept)).error() == errc::device_stopped);
    CHECK(await(f.io, f.gpu.async_alloc_durable<float>(n)).error() == errc::device_stopped);
}

TEST_CASE("an allocation goes on in the next context when its worker is killed")
{
    fixture f;
    const int worker = f.process();
    REQUIRE(::kill(worker, SIGSTOP) == 0);
    std::optional<error_code> ended;
    durable_buffer<float> d;
    f.gpu.async_alloc_durable<float>(n, [&](error_code ec, durable_buffer<float> made) {
        ended = ec;
        d = std::move(made);
    });
    f.io.restart();
    f.io.poll();
    REQUIRE(::kill(worker, SIGKILL) == 0);
    test::run_until(f.io, [&] { return ended.has_value(); });
    CHECK_FALSE(*ended);
    CHECK_FALSE(d.suspect());
    CHECK(f.download(d.ref()) == std::vector<float>(n, 0.0f));
    CHECK(held() == 1);
}

TEST_CASE("a cancelled allocation leaves nothing")
{
    fixture f;
    const int worker = f.process();
    REQUIRE(::kill(worker, SIGSTOP) == 0);
    asio::cancellation_signal stop;
    std::optional<error_code> ended;
    f.gpu.async_alloc_durable<float>(
        n, asio::bind_cancellation_slot(stop.slot(), [&](error_code ec, durable_buffer<float>) { ended = ec; }));
    f.io.restart();
    f.io.poll();
    stop.emit(asio::cancellation_type::total);
    test::run_until(f.io, [&] { return ended.has_value(); });
    CHECK(*ended == asio::error::operation_aborted);
    REQUIRE(::kill(worker, SIGCONT) == 0);
    CHECK_FALSE(f.run(memory::fill<float>{f.alloc<float>(1), 0.0f}));
    test::run_until(f.io, [&] { return f.stats().live_buffers == 0; });
    CHECK(held() == 0);
    CHECK(f.stats().memory.shared == 0);
}

TEST_CASE("impossible sizes, and devices whose memory cannot outlive them, are refused")
{
    fixture f;
    const auto none = await(f.io, f.gpu.async_alloc_durable<float>(0));
    CHECK(none.error() == errc::invalid_argument);
    CHECK(none.error().message() == "memory.durable: count is 0");
    const auto many = std::numeric_limits<std::size_t>::max();
    CHECK(await(f.io, f.gpu.async_alloc_durable<double>(many / 4)).error() == errc::size_overflow);
    CHECK(await(f.io, f.gpu.async_alloc_durable<std::uint8_t>(many / 2)).error() == errc::out_of_memory);
    CHECK(held() == 0);
    CHECK(f.stats().live_buffers == 0);

    test::device_fixture here(test::pool_options());
    const auto refused = await(here.io, here.gpu.async_alloc_durable<float>(n));
    CHECK(refused.error() == errc::unsupported_op);
    CHECK(refused.error().message() == "memory.durable: the device is in this process, where memory ends with its "
                                       "context; use isolation::worker");
}

TEST_CASE("a buffer of another device, or none, is refused")
{
    fixture f, other;
    const auto d = f.durable<float>(n), e = other.durable<float>(n);
    CHECK(f.run(memory::fill<float>{e, 1.0f}) == errc::wrong_device);
    CHECK(await(f.io, f.gpu.async_trust(e)).error() == errc::wrong_device);
    CHECK(await(f.io, f.gpu.async_clear(e)).error() == errc::wrong_device);
    const durable_buffer<float> none;
    CHECK(await(f.io, f.gpu.async_trust(none)).error() == errc::invalid_argument);
    CHECK(await(f.io, f.gpu.async_clear(none)).error() == errc::invalid_argument);
    CHECK_FALSE(none.suspect());
    CHECK(f.run(memory::fill<double>{ref<double>::from_raw(d.ref().raw()), 1.0}) == errc::wrong_dtype);
    CHECK(f.run(memory::fill<float>{d.subspan(n, 1), 1.0f}) == errc::out_of_bounds);
}

TEST_CASE("without free descriptors an allocation fails, and a loss costs an error but no content" *
          doctest::skip(test::checks_objects))
{
    fixture f;
    const auto d = f.durable<float>(n);
    f.write(d, numbers(n));
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    rlimit none = limit;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto refused = await(f.io, f.gpu.async_alloc_durable<float>(n));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == errc::out_of_memory);
    CHECK(held() == 1);
    CHECK(f.stats().live_buffers == 1);
    CHECK(f.download(d.ref()) == numbers(n));
}

TEST_CASE("a limit of memory holds for durable buffers")
{
    auto o = options();
    o.host.memory_limit = 10 << 20;
    fixture f(o);
    const auto d = f.durable<std::uint8_t>(6 << 20);
    CHECK(await(f.io, f.gpu.async_alloc_durable<std::uint8_t>(6 << 20)).error() == errc::out_of_memory);
    f.lose();
    CHECK(await(f.io, f.gpu.async_alloc<std::uint8_t>(6 << 20)).error() == errc::out_of_memory);
    CHECK(await(f.io, f.gpu.async_alloc_durable<std::uint8_t>(3 << 20)));
}

TEST_CASE("a graph over durable buffers runs until its context ends, and its writes count")
{
    fixture f;
    const auto d = f.durable<float>(n);
    const auto x = f.upload(numbers(n));
    {
        const auto made = await(f.io, f.gpu.async_record(seq(blas::axpy<float>{.x = x, .y = d, .n = n, .alpha = 1})));
        REQUIRE_MESSAGE(made, made.error().message());
        CHECK(await(f.io, f.gpu.async_exec(made.value())));
        CHECK(f.download(d.ref()) == numbers(n));
        f.start_and_kill(made.value());
        CHECK(d.suspect());
        CHECK(await(f.io, f.gpu.async_exec(made.value())).error() == errc::stale_ref);
    }
    const auto refused = await(f.io, f.gpu.async_record(seq(memory::fill<float>{d, 1.0f})));
    CHECK(refused.error() == errc::buffer_suspect);
    CHECK(await(f.io, f.gpu.async_trust(d)));
    CHECK(f.download(d.ref()) == numbers(n));
}

TEST_CASE("a forked child has no durable buffers, and does not hold their memory")
{
    // The child logs that its device has failed, for which the log starts a thread.
    if (test::thread_sanitized)
        return;
    fixture f;
    const auto d = f.durable<float>(n);
    f.write(d, numbers(n));
    const int status = test::in_forked_child(f.io, test::notified::yes, [&]() -> int {
        const auto first = test::error_in_child(f.io, f.gpu.async_exec(memory::fill<float>{d, 7.0f}));
        if (!first)
            return test::never_answered;
        if (!is_context_lost(*first) && *first != errc::device_failed)
            return test::first_mistake;
        const auto second = test::error_in_child(f.io, f.gpu.async_alloc_durable<float>(n));
        if (!second)
            return test::never_answered + 1;
        if (!is_context_lost(*second) && *second != errc::device_failed)
            return test::first_mistake + 1;
        return held() == 0 ? test::well : test::first_mistake + 2;
    });
    CHECK(status == test::well);
    CHECK(f.download(d.ref()) == numbers(n));
    CHECK(held() == 1);
}

TEST_SUITE_END();

} // namespace test_integration_durable
