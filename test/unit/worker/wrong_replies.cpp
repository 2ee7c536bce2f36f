#include "fake_worker.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>

namespace test_worker_wrong_replies {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using namespace std::chrono_literals;
using clock_type = detail::clock;

template <class T>
std::span<const std::byte> bytes_of(const T& value)
{
    return std::as_bytes(std::span(&value, 1));
}

/// The result of the op if the worker sends this reply.
template <class Op, class Reply>
error_code outcome_of(test::remote_fixture& f, const Op& op, const Reply& reply)
{
    test::exec<Op> r(op, exec_options{});
    f.driver.submit(r);
    f.answer(f.next().id, {}, bytes_of(reply));
    f.driver.run_until([&] { return !f.driver.ended.empty(); });
    const error_code ec = f.driver.outcome(r);
    f.driver.ended.clear();
    return ec;
}

} // namespace

TEST_SUITE_BEGIN("wrong_replies");

TEST_CASE("an index within the vector is a valid reply to iamax")
{
    test::remote_fixture f;
    const auto x = f.made(1, 10);
    for (const std::uint64_t index : {0, 4, 9})
        CHECK_FALSE(outcome_of(f, blas::iamax<float>{.x = x, .n = 10}, index));
}

TEST_CASE("an index beyond the vector is an invalid reply to iamax and a corrupted worker")
{
    for (const std::uint64_t index : {std::uint64_t(5), std::uint64_t(10), ~std::uint64_t(0)}) {
        CAPTURE(index);
        test::remote_fixture f;
        const auto x = f.made(1, 10);
        // With a stride of two there are five elements.
        CHECK(outcome_of(f, blas::iamax<float>{.x = x, .n = 5, .incx = 2}, index) == errc::context_lost);
        f.expect_loss(errc::worker_corrupted);
        CHECK(f.driver.reason.message().find("blas.iamax<f32>") != std::string::npos);
    }
}

TEST_CASE("a negative sum of magnitudes or norm is an invalid reply, and NaN is a valid one")
{
    const auto reply_of = [](const auto& op, double reply) {
        test::remote_fixture f;
        make_buffers(f.driver, f.world.worker, {f.buffer(1, 10, dtype::f64)});
        auto asked = op;
        asked.x = ref<double>::from_raw(f.buffer(1, 10, dtype::f64));
        asked.n = 10;
        return outcome_of(f, asked, reply);
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double good : {0.0, 1.5, nan, std::numeric_limits<double>::infinity()}) {
        CHECK_FALSE(reply_of(blas::asum<double>{}, good));
        CHECK_FALSE(reply_of(blas::nrm2<double>{}, good));
    }
    CHECK(reply_of(blas::asum<double>{}, -1.0) == errc::context_lost);
    CHECK(reply_of(blas::nrm2<double>{}, -1.0) == errc::context_lost);
}

TEST_CASE("an allocation reply that names an existing buffer is invalid")
{
    test::remote_fixture f;
    (void)f.made(1, 10);
    test::allocate_request r(10, dtype::f32);
    f.driver.submit(r);
    f.answer_made(f.next().id, f.buffer(1, 10));
    f.expect_loss(errc::worker_corrupted);
    CHECK(f.driver.outcome(r) == errc::context_lost);
}

TEST_CASE("the slot of a released buffer may be reused")
{
    test::remote_fixture f;
    (void)f.made(1, 10);
    f.driver.context->release(f.buffer(1, 10));
    (void)f.world.worker.take();
    test::allocate_request r(10, dtype::f32);
    f.driver.submit(r);
    f.answer_made(f.next().id, f.buffer(1, 10));
    CHECK_FALSE(f.driver.outcome(r));
}

TEST_CASE("a loss that the worker reports as a caller's mistake is a corrupted worker")
{
    test::remote_fixture f;
    encoder out;
    out.put(message_type::lost);
    // As the reason of a loss it would make the device fail permanently.
    out.put_error(errc::invalid_argument);
    f.world.worker.say(out.record());
    f.expect_loss(errc::worker_corrupted);
}

// The process of a fake worker has no heartbeat, and these tests do not require one; it represents a worker with a
// heartbeat that is stuck.
struct stuck_worker : test::remote_fixture {
    static constexpr auto limit = 100ms;

    static test::remote_settings settings(std::chrono::nanoseconds hang_timeout)
    {
        test::remote_settings how;
        how.plan.start_timeout = limit - 60ms;
        how.hang_timeout = hang_timeout;
        return how;
    }

    explicit stuck_worker(std::chrono::nanoseconds hang_timeout = 60ms) : remote_fixture(settings(hang_timeout))
    {
        world.worker.block->beats = 1;
    }

    /// Runs the turns that the context asks for within that time.
    void pass(clock_type::duration time)
    {
        for (const auto until = now + time; now < until;) {
            const auto next = driver.context->turn(now);
            now = std::min(until, std::max(now + 1ms, next.when == detail::next_turn::kind::sleep ? next.at : now));
        }
        driver.context->turn(now);
    }

    void send(detail::request& r) { driver.context->submit(r, now); }

    // Earlier than any real clock value, so that no polling depends on real time.
    clock_type::time_point now{1s};
};

TEST_CASE_FIXTURE(stuck_worker, "a worker that does not reply is killed after hang_timeout plus start_timeout")
{
    test::exec<memory::fill<float>> r(memory::fill<float>{floats(3, 10), 1.0f}, exec_options{});
    // Idle time does not count.
    pass(10 * limit);
    send(r);
    pass(limit - 30ms);
    CHECK(driver.losses == 0);
    pass(60ms);
    expect_loss(errc::worker_hung);
    CHECK(driver.outcome(r) == errc::context_lost);
    CHECK(driver.reason.message().find("no reply") != std::string::npos);
}

TEST_CASE_FIXTURE(stuck_worker, "each reply restarts the hang timeout")
{
    for (int i = 0; i < 5; ++i) {
        test::exec<memory::fill<float>> r(memory::fill<float>{floats(3, 10), 1.0f}, exec_options{});
        send(r);
        pass(limit - 30ms);
        record = world.worker.take();
        encoder out;
        out.put(message_type::ended);
        out.put(decoded().id);
        out.put_error({});
        world.worker.say(out.record());
        pass(1ms);
        CHECK_FALSE(driver.outcome(r));
        driver.ended.clear();
    }
    CHECK(driver.losses == 0);
}

TEST_CASE_FIXTURE(stuck_worker, "time in which the machine was suspended does not count")
{
    test::exec<memory::fill<float>> r(memory::fill<float>{floats(3, 10), 1.0f}, exec_options{});
    send(r);
    pass(1ms);
    now += 1h;
    driver.context->turn(now);
    CHECK(driver.losses == 0);
    pass(2 * limit);
    expect_loss(errc::worker_hung);
}

TEST_CASE("without hang_timeout a worker may take any amount of time")
{
    stuck_worker f(0ns);
    test::exec<memory::fill<float>> r(memory::fill<float>{f.floats(3, 10), 1.0f}, exec_options{});
    f.send(r);
    CHECK(f.driver.context->turn(f.now).when != detail::next_turn::kind::idle);
    for (int i = 0; i < 100; ++i)
        f.driver.context->turn(f.now += 1h);
    CHECK(f.driver.losses == 0);
}

TEST_SUITE_END();

} // namespace test_worker_wrong_replies
