#include "cuda/plan/copy_kernels.hpp"
#include "cuda_world.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <optional>

// Runs whose end the device tells by a word in page-locked memory, over the fake driver.
namespace test_cuda_completion_words {
namespace {

using namespace coaccel;
using test::context_driver;
using test::cuda_world;
using test::plan_run;
using test::test_instance;

/// y = x + w
detail::plan_data sum(std::uint64_t n)
{
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, n);
    const auto y = m.floats(slot_kind::output, n);
    const auto w = m.floats(slot_kind::constant, n);
    m.add(memory::copy<float>{w, y});
    m.add(blas::axpy<float>{.x = x, .y = y, .n = n, .alpha = 1});
    return m.finish();
}

/// A loaded plan in a context.
struct loaded {
    explicit loaded(std::uint64_t n, completion how = completion::polled, lane_policy lanes = lane_policy::single())
        : count(n), data(sum(n))
    {
        w.context.completion = how;
        w.context.lanes = lanes;
        d.emplace(w);
        i.emplace(*d, data, 1, 1);
        i->set(i->first_constant(), std::vector<float>(n, 1));
        REQUIRE_FALSE(i->load());
    }

    std::vector<float> values(float v) const { return std::vector<float>(count, v); }

    void check_run()
    {
        plan_run r(*i, {values(2)});
        CHECK_FALSE(d->outcome_of(*r.request));
        CHECK(r.outputs[0] == values(3));
    }

    /// The events that this many runs record.
    int events_of(int runs)
    {
        const int before = w.driver.calls("cuEventRecord");
        for (int n = 0; n < runs; ++n)
            check_run();
        return w.driver.calls("cuEventRecord") - before;
    }

    const std::uint64_t count;
    const detail::plan_data data;
    cuda_world w;
    std::optional<context_driver> d;
    std::optional<test_instance> i;
};

constexpr std::uint64_t most_floats = cuda::most_told_bytes / sizeof(float);

TEST_SUITE_BEGIN("completion words");

TEST_CASE("a run with small outputs records no event")
{
    for (const std::uint64_t n : {std::uint64_t(1), std::uint64_t(4), std::uint64_t(1023), most_floats}) {
        CAPTURE(n);
        loaded l(n);
        CHECK(l.events_of(3) == 0);
    }
}

TEST_CASE("a run with larger outputs ends with an event")
{
    loaded l(most_floats + 1);
    CHECK(l.events_of(3) == 3);
}

TEST_CASE("threads that block wait for events")
{
    loaded l(4, completion::sync);
    CHECK(l.events_of(3) == 3);
}

TEST_CASE("with notifications, runs end as well")
{
    for (const auto how : {completion::host_fn, completion::adaptive}) {
        loaded l(4, how);
        for (int n = 0; n < 20; ++n)
            l.check_run();
    }
}

TEST_CASE("an op on another lane waits for a run that has a word")
{
    loaded l(4, completion::polled, lane_policy::pooled(2));
    // The lanes exist.
    for (const int lane : {0, 1}) {
        plan_run r(*l.i, {l.values(2)}, exec_options{.lane = lane});
        CHECK_FALSE(l.d->outcome_of(*r.request));
    }
    l.d->ended.clear();
    l.w.driver.hold_all(true);
    plan_run r(*l.i, {l.values(2)}, exec_options{.lane = 0});
    l.d->submit(*r.request);
    const int waits = l.w.driver.calls("cuStreamWaitEvent");
    using bytes = test_instance::bytes;
    const memory::fill<bytes> clear{ref<bytes>::from_raw(l.i->refs.front()), 0};
    test::exec<memory::fill<bytes>> change(clear, exec_options{.lane = 1});
    l.d->submit(change);
    CHECK(l.w.driver.calls("cuStreamWaitEvent") == waits + 1);
    l.w.driver.hold_all(false);
    l.d->run_until([&] { return l.d->ended.size() == 2; });
    CHECK(r.outputs[0] == l.values(3));
}

TEST_CASE("a run ends before long work behind it on its lane")
{
    for (const auto how : {completion::polled, completion::host_fn, completion::adaptive}) {
        CAPTURE(int(how));
        loaded l(4, how);
        const auto x = l.d->floats(4);
        test::gate gate;
        l.w.driver.hold_all(true);
        plan_run r(*l.i, {l.values(2)});
        l.d->submit(*r.request);
        test::hold<inout<float>> behind(test::hold_lane{&l.w, gate}, std::tuple(inout<float>(x)));
        l.d->submit(behind);
        l.w.driver.hold_all(false);
        l.d->run_until([&] { return l.d->has_ended(*r.request); });
        CHECK(r.outputs[0] == l.values(3));
        CHECK_FALSE(l.d->has_ended(behind));
        gate.open();
        l.d->run_until([&] { return l.d->has_ended(behind); });
        l.d->ended.clear();
    }
}

TEST_CASE("an event that cannot be recorded for a notification leaves the word")
{
    loaded l(4, completion::host_fn);
    l.w.driver.hold_all(true);
    plan_run r(*l.i, {l.values(2)});
    l.d->submit(*r.request);
    l.w.driver.fail_from("cuEventRecord", CUDA_ERROR_OUT_OF_MEMORY);
    (void)l.d->context->turn(std::chrono::steady_clock::now());
    CHECK_FALSE(l.d->has_ended(*r.request));
    l.w.driver.forgive();
    l.w.driver.hold_all(false);
    l.d->run_until([&] { return l.d->has_ended(*r.request); });
    CHECK_FALSE(l.d->outcome(*r.request));
    CHECK(r.outputs[0] == l.values(3));
}

TEST_CASE("a run that never sets its word is found by the driver's error")
{
    loaded l(4);
    l.w.poison();
    plan_run r(*l.i, {l.values(2)});
    l.d->submit(*r.request);
    l.d->run_until([&] { return l.d->losses > 0; });
    CHECK(l.d->losses == 1);
}

TEST_CASE("instances that come and go share the words")
{
    loaded l(4);
    const auto pinned = l.w.driver.calls("cuMemHostRegister");
    for (std::uint64_t id = 2; id < 200; ++id) {
        test_instance other(*l.d, l.data, id, 1);
        other.set(other.first_constant(), l.values(1));
        REQUIRE_FALSE(other.load());
        plan_run r(other, {l.values(2)});
        CHECK_FALSE(l.d->outcome_of(*r.request));
        CHECK(r.outputs[0] == l.values(3));
        REQUIRE_FALSE(other.unload());
    }
    // One registration for the arguments of each.
    CHECK(l.w.driver.calls("cuMemHostRegister") == pinned + 198);
}

TEST_SUITE_END();

} // namespace
} // namespace test_cuda_completion_words
