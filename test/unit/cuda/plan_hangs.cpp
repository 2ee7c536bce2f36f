#include "cuda/plan/op_sequence.hpp"
#include "cuda_world.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <set>

namespace test_cuda_plan_hangs {

// Plans whose ops do not end when they are run for the first time.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::context_driver;
using test::context_world;
using test::for_each_plan_context;
using test::test_instance;

const exec_options other_lane{.lane = 1};

/// y = n x; its ops can be recorded, except if there is a dot product among them.
detail::plan_data sum_of(int n, bool recordable = true)
{
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, 4);
    const auto y = m.floats(slot_kind::output, 4);
    m.add(memory::fill<float>{y, 0});
    for (int k = 0; k < n; ++k)
        m.add(blas::axpy<float>{.x = x, .y = y, .n = 4, .alpha = 1});
    if (!recordable)
        m.add(blas::dot<float>{x, x, 4});
    return m.finish();
}

/// A context with an instance, and the load of a second one. Its ops do not run before let_go().
class blocked_load {
public:
    blocked_load(context_world& w, context_driver& d, int ops)
        : driver_(static_cast<test::cuda_world&>(w).driver), data_(sum_of(ops)), first(d, data_, 1, 1),
          second(d, data_, 2, 1)
    {
        // Without a recording, so that only its lane is made.
        const auto plain = sum_of(1, false);
        test_instance unrecorded(d, plain, 3, 1);
        REQUIRE_FALSE(unrecorded.load(other_lane));
        REQUIRE_FALSE(unrecorded.unload(other_lane));
        std::set<CUstream> before;
        for (const auto& s : driver_.streams())
            before.insert(s.handle);
        REQUIRE_FALSE(first.load(other_lane));
        // Where instances are recorded, and perhaps a stream for notifications.
        for (const auto& s : driver_.streams())
            if (!before.contains(s.handle))
                held_.push_back(s.handle);
        REQUIRE_FALSE(held_.empty());
        for (CUstream s : held_)
            driver_.hold(s);
        load = second.make_load(other_lane);
    }

    void let_go()
    {
        for (CUstream s : std::exchange(held_, {}))
            driver_.let_go(s);
    }

    std::vector<CUstream> take_held() { return std::exchange(held_, {}); }

private:
    test::fake_cuda& driver_;
    detail::plan_data data_;
    std::vector<CUstream> held_;

public:
    test_instance first;
    test_instance second;
    decltype(second.make_load(other_lane)) load;
};

TEST_SUITE_BEGIN("plan hangs");

/// Such a context is abandoned with all its resources, including the thread that waits in the driver. It may leave the
/// driver now.
void end_abandoned(context_world& w, const std::vector<CUstream>& held)
{
    auto& driver = static_cast<test::cuda_world&>(w).driver;
    for (CUstream s : held)
        driver.let_go(s);
    CHECK(driver.violations().empty());
}

TEST_CASE("a warm-up that never ends condemns its context when hang_timeout is set")
{
    // The second plan is so large that it is waited for while its ops are put on the stream.
    for (const int ops : {3, int(cuda::op_sequence::most_commands) + 10})
        for_each_plan_context([&](context_world& w) {
            CAPTURE(ops);
            w.context.hang_timeout = 400ms;
            std::vector<CUstream> held;
            {
                context_driver d(w);
                blocked_load b(w, d, ops);
                d.submit(*b.load);
                d.run_until([&] { return d.losses > 0 || !d.ended.empty(); });
                CHECK(d.outcome(*b.load) == errc::context_lost);
                held = b.take_held();
            }
            end_abandoned(w, held);
        });
}

TEST_CASE("a warm-up that never ends costs no other device of the GPU its plans")
{
    test::cuda_world w;
    const auto data = sum_of(1);
    context_driver neighbour(w);
    test_instance loaded(neighbour, data, 1, 1);
    REQUIRE_FALSE(loaded.load());
    const auto check_run = [&](const test_instance& i) {
        test::plan_run run(i, {{1, 2, 3, 4}});
        CHECK_FALSE(neighbour.outcome_of(*run.request));
        CHECK(run.outputs[0] == std::vector<float>{1, 2, 3, 4});
    };
    std::vector<CUstream> held;
    w.context.hang_timeout = 400ms;
    {
        context_driver d(w);
        blocked_load b(w, d, 3);
        d.submit(*b.load);
        d.run_until([&] { return d.losses > 0 || !d.ended.empty(); });
        CHECK(d.outcome(*b.load) == errc::context_lost);
        held = b.take_held();
        check_run(loaded);
    }
    check_run(loaded);
    test_instance later(neighbour, data, 2, 2);
    REQUIRE_FALSE(later.load());
    check_run(later);
    CHECK(neighbour.losses == 0);
    end_abandoned(w, held);
}

TEST_CASE("a warm-up that takes less than hang_timeout is not a hang")
{
    for_each_plan_context([](context_world& w) {
        w.context.hang_timeout = 20s;
        context_driver d(w);
        blocked_load b(w, d, 3);
        d.submit(*b.load);
        for (const auto until = detail::clock::now() + 20ms; detail::clock::now() < until;)
            (void)d.context->turn(detail::clock::now());
        CHECK(d.ended.empty());
        b.let_go();
        d.run_until([&] { return d.losses > 0 || d.has_ended(*b.load); });
        CHECK_FALSE(d.outcome(*b.load));
        CHECK(d.losses == 0);
        d.ended.clear();
        CHECK_FALSE(b.first.unload());
        CHECK_FALSE(b.second.unload());
    });
}

TEST_CASE("a dropped context does not wait for a warm-up that never ends when hang_timeout is set")
{
    for_each_plan_context([](context_world& w) {
        w.context.hang_timeout = 400ms;
        auto& driver = static_cast<test::cuda_world&>(w).driver;
        std::vector<CUstream> held;
        {
            context_driver d(w);
            blocked_load b(w, d, 3);
            d.submit(*b.load);
            // The helper thread waits for the lane, then for the stream of the recording.
            const int waits = driver.calls("cuStreamSynchronize");
            d.run_until([&] { return driver.calls("cuStreamSynchronize") >= waits + 2; });
            detail::async_op_list left;
            d.context->drop(left);
            CHECK(left.pop_front() == b.load.get());
            held = b.take_held();
        }
        end_abandoned(w, held);
    });
}

TEST_SUITE_END();

} // namespace

} // namespace test_cuda_plan_hangs
