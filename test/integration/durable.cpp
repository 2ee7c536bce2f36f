#include "durable_fixture.hpp"

#include <algorithm>

namespace test_integration_durable {

using namespace test::durable_workers;

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

TEST_SUITE_END();

} // namespace test_integration_durable
