#include "support/devices.hpp"
#include "support/gate.hpp"
#include "support/tracking.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

namespace test_device_early_answers {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::make_device;

/// A device with one lane, on which an op waits at a gate. Later ops are started but do not complete.
struct held_up {
    held_up()
    {
        auto o = test::pool_options();
        o.context.lanes = lane_policy::single();
        gpu = make_device(io, o);
        x = await(io, gpu.async_alloc<float>(4, memory_init::zero)).value();
        y = await(io, gpu.async_alloc<float>(4, memory_init::zero)).value();
        gpu.async_submit(inout(y), test::gate_op{&gate}, asio::detached);
        test::run_until(io, [this] { return gate.reached(1); });
    }
    held_up(const held_up&) = delete;
    held_up& operator=(const held_up&) = delete;
    ~held_up() { gate.open(); }

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    // Declared before the execution context, whose destruction waits for ops.
    test::gate gate;
    std::vector<float> memory = std::vector<float>(4, 1.0f);
    asio::io_context io;
    device gpu;
    buffer<float> x;
    buffer<float> y;
};

using on_answer = std::function<void(error_code)>;

struct kind {
    std::string_view name;
    bool uses_callers_memory;
    void (*start)(held_up&, const exec_options&, asio::cancellation_slot, on_answer);
};

template <class Handler>
auto bound(asio::cancellation_slot slot, Handler handler)
{
    return asio::bind_cancellation_slot(slot, std::move(handler));
}

const kind kinds[] = {
    {"exec", false,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_exec(memory::fill<float>{h.x, 2.0f}, bound(slot, std::move(done)));
     }},
    {"exec with a reply", false,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_exec(blas::asum<float>{.x = h.x, .n = 4},
                                    bound(slot, [done](error_code ec, float) { done(ec); }));
     }},
    {"seq", false,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_exec(seq(memory::fill<float>{h.x, 2.0f}, blas::asum<float>{.x = h.x, .n = 4}),
                                    bound(slot, [done](error_code ec, std::tuple<float>) { done(ec); }));
     }},
    {"alloc", false,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_alloc<float>(8, memory_init::zero,
                                            bound(slot, [done](error_code ec, const buffer<float>& made) {
                                                CHECK(bool(made) == !ec);
                                                done(ec);
                                            }));
     }},
    {"download", false,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_download(h.x, bound(slot, [done](error_code ec, const std::vector<float>& got) {
                                            CHECK(got.empty() == bool(ec));
                                            done(ec);
                                        }));
     }},
    {"write", true,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_write(h.x, h.memory, bound(slot, std::move(done)));
     }},
    {"read", true,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_read(h.x, h.memory, bound(slot, std::move(done)));
     }},
    {"upload", true,
     [](held_up& h, const exec_options& how, asio::cancellation_slot slot, on_answer done) {
         h.gpu.with(how).async_upload(h.memory, bound(slot, [done](error_code ec, const buffer<float>&) { done(ec); }));
     }},
};

struct outcome {
    error_code ec = errc::no_value;
    bool is_there() const { return ec != errc::no_value; }
    on_answer handler()
    {
        return [this](error_code e) { ec = e; };
    }
};

/// Calls `start` to start n ops with a deadline that passes after they were started. The deadline counts from the
/// initiation, and on a machine under load it may pass too early; the attempt is then repeated with twice the time.
template <class Start>
std::unique_ptr<held_up> started_in_time(std::uint64_t n, Start start)
{
    for (auto time = 20ms;; time *= 2) {
        auto h = std::make_unique<held_up>();
        start(*h, within(time));
        if (h->stats().in_flight == n + 1)
            return h;
    }
}

/// Checks that an op completes with `wanted`, and when.
void check_answer(held_up& h, const kind& k, const outcome& o, error_code wanted)
{
    if (!k.uses_callers_memory)
        test::run_until(h.io, [&] { return o.is_there(); });
    const auto before = h.stats();
    CHECK(o.is_there() == !k.uses_callers_memory);
    // The op is still in flight.
    CHECK(before.in_flight == 2);
    h.gate.open();
    test::run_until(h.io, [&] { return o.is_there(); });
    CHECK(o.ec == wanted);
    test::run_until(h.io, [&] { return h.stats().in_flight == 0; });
    const auto after = h.stats();
    CHECK(after.live_buffers == 2);
    CHECK(after.failed == 0);
    CHECK(after.cancelled == (wanted == operation_aborted));
    CHECK(after.expired == (wanted == errc::deadline_exceeded));
}

TEST_SUITE_BEGIN("early answers");

TEST_CASE("partial and terminal cancellation complete a started op at once, or after its use of caller memory")
{
    for (const auto& k : kinds)
        for (const auto type : {asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
            CAPTURE(k.name);
            held_up h;
            asio::cancellation_signal signal;
            outcome o;
            k.start(h, {}, signal.slot(), o.handler());
            CHECK(h.stats().in_flight == 2);
            signal.emit(type);
            check_answer(h, k, o, operation_aborted);
        }
}

TEST_CASE("total cancellation of a started op is ignored")
{
    for (const auto& k : kinds) {
        CAPTURE(k.name);
        held_up h;
        asio::cancellation_signal signal;
        outcome o;
        k.start(h, {}, signal.slot(), o.handler());
        CHECK(h.stats().in_flight == 2);
        signal.emit(asio::cancellation_type::total);
        CHECK(h.stats().in_flight == 2);
        CHECK_FALSE(o.is_there());
        h.gate.open();
        test::run_until(h.io, [&] { return o.is_there(); });
        CHECK_FALSE(o.ec);
        CHECK(h.stats().cancelled == 0);
    }
}

TEST_CASE("a deadline completes a started op at once, or after its use of caller memory")
{
    for (const auto& k : kinds) {
        CAPTURE(k.name);
        outcome o, later;
        exec_options after_it;
        const auto held = started_in_time(1, [&](held_up& h, const exec_options& how) {
            o = {};
            after_it.deadline = how.deadline + 20ms;
            k.start(h, how, {}, o.handler());
        });
        held_up& h = *held;
        if (k.uses_callers_memory) {
            // When this op completes, the deadline of the other has passed.
            h.gpu.with(after_it).async_exec(memory::fill<float>{h.y, 2.0f}, later.handler());
            test::run_until(h.io, [&] { return later.is_there(); });
            CHECK(later.ec == errc::deadline_exceeded);
            CHECK_FALSE(o.is_there());
            h.gate.open();
            test::run_until(h.io, [&] { return o.is_there(); });
            CHECK(o.ec == errc::deadline_exceeded);
            test::run_until(h.io, [&] { return h.stats().in_flight == 0; });
            CHECK(h.stats().expired == 2);
            CHECK(h.stats().failed == 0);
            CHECK(h.stats().live_buffers == 2);
        } else {
            check_answer(h, k, o, errc::deadline_exceeded);
        }
    }
}

TEST_CASE("cancel() acts as terminal cancellation of every started op")
{
    for (const auto& k : kinds) {
        CAPTURE(k.name);
        held_up h;
        outcome o, second;
        k.start(h, {}, {}, o.handler());
        CHECK(h.stats().in_flight == 2);
        h.gpu.cancel();
        (void)h.stats();
        CHECK(o.is_there() == !k.uses_callers_memory);
        h.gate.open();
        test::run_until(h.io, [&] { return o.is_there(); });
        CHECK(o.ec == operation_aborted);
        // A later op is not affected.
        h.gpu.async_exec(memory::fill<float>{h.x, 3.0f}, second.handler());
        test::run_until(h.io, [&] { return second.is_there(); });
        CHECK_FALSE(second.ec);
    }
}

TEST_CASE("an op that completed early still runs on the device, in its order")
{
    outcome o;
    const auto held = started_in_time(1, [&](held_up& h, const exec_options& how) {
        o = {};
        h.gpu.with(how).async_exec(memory::fill<float>{h.x, 7.0f}, o.handler());
    });
    held_up& h = *held;
    test::run_until(h.io, [&] { return o.is_there(); });
    CHECK(o.ec == errc::deadline_exceeded);
    h.gate.open();
    CHECK(await(h.io, h.gpu.async_download(h.x)).value() == std::vector<float>(4, 7.0f));
}

TEST_CASE("the handler's allocator gets its memory back before an early completion calls the handler")
{
    held_up h;
    test::allocation_count count;
    asio::cancellation_signal signal;
    bool called = false;
    h.gpu.async_exec(memory::fill<float>{h.x, 1.0f},
                     asio::bind_cancellation_slot(
                         signal.slot(), asio::bind_allocator(test::tracking_allocator<void>(count), [&](error_code ec) {
                             CHECK(ec == operation_aborted);
                             CHECK(count.live == 0);
                             called = true;
                         })));
    CHECK(count.allocations >= 1);
    CHECK(h.stats().in_flight == 2);
    signal.emit(asio::cancellation_type::terminal);
    test::run_until(h.io, [&] { return called; });
    CHECK(h.stats().in_flight == 2);
    signal.emit(asio::cancellation_type::terminal);
}

TEST_CASE("the execution context may be destroyed while ops that completed early are still on the device")
{
    auto held = std::make_shared<int>(0);
    {
        int answers = 0;
        const auto h = started_in_time(std::size(kinds), [&](held_up& where, const exec_options& how) {
            answers = 0;
            for (const auto& k : kinds)
                k.start(where, how, {}, [held, &answers](error_code) { ++answers; });
        });
        test::run_until(h->io, [&] { return answers == 5; });
        CHECK(held.use_count() == 4);
        h->gate.open();
    }
    CHECK(held.use_count() == 1);
}

TEST_CASE("a device finishes ops that completed early before it stops, and counts as work until then")
{
    outcome o;
    const auto held = started_in_time(1, [&](held_up& h, const exec_options& how) {
        o = {};
        h.gpu.with(how).async_exec(memory::fill<float>{h.x, 7.0f}, o.handler());
    });
    held_up& h = *held;
    test::run_until(h.io, [&] { return o.is_there(); });
    auto states = h.gpu.watch_state();
    h.x.reset();
    h.y.reset();
    h.gpu = {};
    test::run_until(h.io, [&] { return states.get().state == device_state::stopping; });
    h.io.poll();
    CHECK_FALSE(h.io.stopped());
    h.gate.open();
    test::run_out(h.io);
    CHECK(states.get().state == device_state::stopped);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_early_answers
