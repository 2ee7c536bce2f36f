#include "foreign_code.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace test_cuda_interop {

// Events between ops and other CUDA code in the process.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::adopt;
using test::context_driver;
using test::cuda_world;
using test::exec;
using test::foreign_code;
using test::hold;
using test::hold_lane;
using test::record_op;
using test::wait_op;

wait_op wait_for(CUevent e, ref<float> x)
{
    return wait_op(interop::wait_event<float>{.event = e, .data = x}, exec_options{});
}

record_op record(CUevent e, ref<float> x)
{
    return record_op(interop::record_event<float>{.event = e, .data = x}, exec_options{});
}

using copy_op = exec<memory::copy<float>>;

} // namespace

TEST_SUITE_BEGIN("cuda interop");

TEST_CASE("ops on the memory wait for the event of other code, others do not")
{
    for (const auto& policy : {lane_policy::chained(4), lane_policy::per_library(), lane_policy::pooled(3)}) {
        std::atomic<bool> open{false};
        cuda_world w;
        w.context.lanes = policy;
        foreign_code other(w.driver);
        float* memory = other.allocate(4);
        const CUevent event = other.make_event();
        {
            context_driver d(w);
            const auto x = adopt(d, memory, 4);
            const auto y = d.floats(4);
            const auto z = d.floats(4);
            // The other code writes late.
            w.driver.block(other.stream, [&] { return open.load(); });
            other.fill(memory, 7.0f, 4);
            CHECK(other.api.cuEventRecord(event, other.stream) == CUDA_SUCCESS);

            auto waits = wait_for(event, x);
            d.submit(waits);
            copy_op copy(memory::copy<float>{.src = x, .dst = y}, exec_options{});
            d.submit(copy);
            exec<memory::fill<float>> unrelated(memory::fill<float>{z, 1.0f}, exec_options{.lane = 2});
            CHECK_FALSE(d.outcome_of(unrelated));
            CHECK_FALSE(d.has_ended(waits));
            CHECK_FALSE(d.has_ended(copy));
            open = true;
            d.run_until([&] { return d.has_ended(copy); });
            CHECK_FALSE(d.outcome(waits));
            CHECK_FALSE(d.outcome(copy));
            CHECK(d.read(y) == std::vector<float>(4, 7.0f));
        }
        other.free(memory);
    }
}

TEST_CASE("an event that has passed, or was never recorded, puts nothing on the stream")
{
    cuda_world w;
    // A notification would wait for an event too.
    w.context.completion = completion::polled;
    w.context.lanes = lane_policy::single();
    foreign_code other(w.driver);
    const CUevent event = other.make_event();
    context_driver d(w);
    const auto x = d.floats(4);
    d.write(x, {1, 2, 3, 4});
    const int before = w.driver.calls("cuStreamWaitEvent");
    auto r = wait_for(event, x);
    CHECK_FALSE(d.outcome_of(r));
    CHECK(w.driver.calls("cuStreamWaitEvent") == before);
}

TEST_CASE("a record completes when it is on its stream, and its event passes after the ops before it")
{
    for (const auto& policy : {lane_policy::chained(4), lane_policy::per_library(), lane_policy::single()}) {
        cuda_world w;
        w.context.lanes = policy;
        foreign_code other(w.driver);
        float* memory = other.allocate(4);
        const CUevent event = other.make_event();
        {
            context_driver d(w);
            const auto x = adopt(d, memory, 4);
            test::gate gate;
            hold<inout<float>> slow(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
            d.submit(slow);
            exec<memory::fill<float>> fills(memory::fill<float>{x, 3.0f}, exec_options{});
            d.submit(fills);
            auto marks = record(event, x);
            CHECK_FALSE(d.outcome_of(marks));
            CHECK_FALSE(d.has_ended(slow));
            CHECK_FALSE(d.has_ended(fills));
            CHECK(other.api.cuEventQuery(event) == CUDA_ERROR_NOT_READY);
            // Other code waits on the GPU, not on the host.
            CHECK(other.api.cuStreamWaitEvent(other.stream, event, 0) == CUDA_SUCCESS);
            std::vector<float> seen(4);
            CHECK(w.driver.enqueue(other.stream, [&] { seen.assign(memory, memory + 4); }) == CUDA_SUCCESS);
            gate.open();
            CHECK(other.api.cuStreamSynchronize(other.stream) == CUDA_SUCCESS);
            CHECK(seen == std::vector<float>(4, 3.0f));
            d.run_until([&] { return d.has_ended(slow) && d.has_ended(fills); });
            // The lane is idle again.
            d.run_until([&] { return d.context->turn(detail::clock::now()).when == detail::next_turn::kind::idle; });
        }
        other.free(memory);
    }
}

TEST_CASE("a record in a seq completes with the ops after it")
{
    cuda_world w;
    foreign_code other(w.driver);
    const CUevent event = other.make_event();
    context_driver d(w);
    const auto x = d.floats(4);
    test::gate gate;
    hold<inout<float>> slow(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
    d.submit(slow);
    using record_type = interop::record_event<float>;
    using fill_type = memory::fill<float>;
    test::manual<detail::seq_request<record_type, fill_type>> both(
        seq(record_type{.event = event, .data = x}, fill_type{.dst = x, .value = 1}), exec_options{});
    d.submit(both);
    d.run_until([&] { return gate.reached(1); });
    CHECK_FALSE(d.has_ended(both));
    gate.open();
    d.run_until([&] { return d.has_ended(both) && d.has_ended(slow); });
    CHECK_FALSE(d.outcome(both));
}

TEST_CASE("handing memory back and forth keeps the order")
{
    cuda_world w;
    foreign_code other(w.driver);
    constexpr std::size_t n = 64;
    constexpr int rounds = 20;
    float* memory = other.allocate(n);
    const CUevent ours = other.make_event();
    CUevent theirs = nullptr;
    REQUIRE(other.api.cuEventCreate(&theirs, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    {
        context_driver d(w);
        const auto x = adopt(d, memory, n);
        std::fill_n(memory, n, 0.0f);
        for (int i = 0; i < rounds; ++i) {
            const auto expected = static_cast<float>(2 * i);
            CHECK(w.driver.enqueue(other.stream, [=] {
                for (std::size_t k = 0; k < n; ++k)
                    memory[k] = memory[k] == expected ? expected + 1 : -1000;
            }) == CUDA_SUCCESS);
            CHECK(other.api.cuEventRecord(theirs, other.stream) == CUDA_SUCCESS);
            auto waits = wait_for(theirs, x);
            d.submit(waits);
            struct add_one {
                test::fake_cuda* driver;
                float expected;

                void operator()(native_stream s, std::span<float> data) const
                {
                    const auto work = [data, was = expected] {
                        for (float& v : data)
                            v = v == was ? was + 1 : -1000;
                    };
                    CHECK(driver->enqueue(static_cast<CUstream>(s.handle), work) == CUDA_SUCCESS);
                }
            };
            test::manual<detail::submit_request<add_one, inout<float>>> adds(add_one{&w.driver, expected + 1},
                                                                             std::tuple(inout<float>(x)));
            d.submit(adds);
            auto marks = record(ours, x);
            CHECK_FALSE(d.outcome_of(marks));
            CHECK(other.api.cuStreamWaitEvent(other.stream, ours, 0) == CUDA_SUCCESS);
            d.run_until([&] { return d.has_ended(waits) && d.has_ended(adds); });
            d.ended.clear();
        }
        CHECK(d.read(x) == std::vector<float>(n, 2.0f * rounds));
    }
    CHECK(other.api.cuEventDestroy(theirs) == CUDA_SUCCESS);
    other.free(memory);
}

TEST_CASE("an event that the driver refuses is the caller's mistake, and the context continues")
{
    cuda_world w;
    // So that the next record is that of the op.
    w.context.lanes = lane_policy::single();
    foreign_code other(w.driver);
    const CUevent event = other.make_event();
    context_driver d(w);
    const auto x = d.floats(4);
    d.write(x, {1, 2, 3, 4});
    const auto check = [&](detail::request& r, const std::string& op) {
        const auto ec = d.outcome_of(r);
        CHECK(ec == errc::invalid_argument);
        CHECK_MESSAGE(ec.message().starts_with(op + ": the driver refuses event: "), ec.message());
    };
    for (const auto result : {CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE}) {
        CAPTURE(int(result));
        w.driver.fail("cuEventQuery", result);
        auto waits = wait_for(event, x);
        check(waits, "interop.wait_event");
        w.driver.fail("cuEventRecord", result);
        auto marks = record(event, x);
        check(marks, "interop.record_event");
    }
    CHECK(d.losses == 0);
    auto null_wait = wait_for(nullptr, x);
    CHECK(d.outcome_of(null_wait).message() == "interop.wait_event: event is null");
    auto null_record = record(nullptr, x);
    CHECK(d.outcome_of(null_record).message() == "interop.record_event: event is null");
    auto empty = wait_for(event, x.subspan(0, 0));
    CHECK(d.outcome_of(empty).message() == "interop.wait_event: data has 0 elements");
    auto nowhere = record(event, {});
    CHECK(d.outcome_of(nowhere) == errc::invalid_argument);
    d.write(x, {1, 2, 3, 4});
    CHECK(d.read(x) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("an event of a stream capture is refused, and our stream does not become a part of the capture")
{
    cuda_world w;
    foreign_code other(w.driver);
    const CUevent event = other.make_event();
    context_driver d(w);
    const auto x = d.floats(4);
    CHECK(other.api.cuStreamBeginCapture(other.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
    CHECK(other.api.cuEventRecord(event, other.stream) == CUDA_SUCCESS);
    auto waits = wait_for(event, x);
    const auto ec = d.outcome_of(waits);
    CHECK(ec == errc::invalid_argument);
    CHECK(ec.message() == "interop.wait_event: event was recorded in a stream capture");
    CUgraph graph = nullptr;
    // The query has invalidated it, as with the real driver.
    CHECK(other.api.cuStreamEndCapture(other.stream, &graph) != CUDA_SUCCESS);
    d.write(x, {1, 2, 3, 4});
    CHECK(d.read(x) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("an event that never passes is an op that hangs")
{
    std::atomic<bool> open{false};
    cuda_world w;
    w.context.hang_timeout = 200ms;
    foreign_code other(w.driver);
    const CUevent event = other.make_event();
    context_driver neighbour(w);
    {
        context_driver d(w);
        const auto x = d.floats(4);
        w.driver.block(other.stream, [&] { return open.load(); });
        CHECK(other.api.cuEventRecord(event, other.stream) == CUDA_SUCCESS);
        auto waits = wait_for(event, x);
        d.submit(waits);
        d.run_until([&] { return d.losses > 0; });
        CHECK(d.outcome(waits) == errc::context_lost);
    }
    CHECK(neighbour.losses == 0);
    open = true;
    // An abandoned context leaves everything to the end of the process.
    CHECK(w.driver.violations().empty());
}

TEST_CASE("a fault reaches waits and records like other ops")
{
    cuda_world w;
    foreign_code other(w.driver);
    const CUevent event = other.make_event();
    context_driver d(w);
    const auto x = d.floats(4);
    test::gate gate;
    hold<inout<float>> slow(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
    d.submit(slow);
    d.run_until([&] { return gate.reached(1); });
    w.driver.kill(CUDA_ERROR_LAUNCH_FAILED);
    auto waits = wait_for(event, x);
    auto marks = record(event, x);
    d.submit(waits);
    d.submit(marks);
    d.run_until([&] { return d.losses > 0; });
    CHECK(d.outcome(waits) == errc::context_lost);
    CHECK(d.outcome(marks) == errc::context_lost);
    gate.open();
    other.event = nullptr;
}

TEST_SUITE_END();

} // namespace test_cuda_interop
