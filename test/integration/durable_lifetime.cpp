#include "durable_fixture.hpp"

namespace test_integration_durable_lifetime {

using namespace test::durable_workers;

TEST_SUITE_BEGIN("isolated durable buffers: memory");

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

} // namespace test_integration_durable_lifetime
