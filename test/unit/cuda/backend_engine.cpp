#include "cuda_world.hpp"
#include "support/context_cases.hpp"

#include <deque>

// The engine's conformance suite on the CUDA backend, over the fake driver.
namespace {

using namespace std::chrono_literals;
using test::cuda_world;

constexpr std::uint64_t seeds = 3;

cuda_world& as_cuda(context_world& w)
{
    return static_cast<cuda_world&>(w);
}

// As cudaSetDevice and similar calls do in a user's function.
struct change_context {
    const cuda::driver_api* api;

    void operator()(native_stream, std::span<float>) const { CHECK(api->cuCtxSetCurrent(nullptr) == CUDA_SUCCESS); }
};

/// One request that fills a buffer n times, the last time with n - 1.
class many_fills final : public detail::request {
public:
    many_fills(ref<float> x, std::size_t n) : fills_(n), addresses_(n), bound_(n)
    {
        for (std::size_t i = 0; i < n; ++i) {
            fills_[i] = {x, static_cast<float>(i)};
            bound_[i] = {.info = &info_of<memory::fill<float>>(), .op = &fills_[i], .operands = &addresses_[i]};
        }
        ops = bound_;
    }

    void post() override {}
    void destroy() noexcept override {}

private:
    std::vector<memory::fill<float>> fills_;
    std::vector<void*> addresses_;
    std::vector<bound_op> bound_;
};

} // namespace

std::vector<test::context_setting> test::contexts_under_test()
{
    std::vector<context_setting> all;
    for (const auto& [name, options] : context_variants())
        for (std::uint64_t seed = 1; seed <= seeds; ++seed)
            all.push_back({name + ", seed " + std::to_string(seed), true, [=, options = options] {
                               auto made = std::make_unique<cuda_world>(fake_cuda::settings{.seed = seed});
                               made->context = options;
                               return made;
                           }});
    return all;
}

TEST_SUITE_BEGIN("engine");

// A standby worker depends on it for its warm-up.
TEST_CASE("requests that are started together use all lanes, each with a cuBLAS handle and a workspace")
{
    for (const auto& policy :
         {lane_policy::chained(4), lane_policy::chained(8), lane_policy::pooled(3), lane_policy::single()}) {
        const auto handles = static_cast<unsigned>(policy.count);
        cuda_world w;
        w.context.lanes = policy;
        context_driver d(w);
        std::vector<ref<float>> scratch;
        for (unsigned i = 0; i < handles; ++i)
            scratch.push_back(d.floats(256));
        const auto before = d.context->memory();
        CHECK(before.library_objects == 0);
        for (int round = 0; round < 2; ++round) {
            std::deque<manual<detail::list_request>> requests;
            for (const auto& x : scratch) {
                op_list ops;
                ops.add(memory::fill<float>{.dst = x, .value = 1});
                ops.add(blas::dot<float>{.x = x, .y = x, .n = 256});
                requests.emplace_back(ops, exec_options{});
                d.context->submit(requests.back(), detail::clock::now());
            }
            for (auto& r : requests) {
                d.run_until([&] { return d.has_ended(r); });
                CHECK_FALSE(d.ended[&r].front());
                d.ended.erase(&r);
            }
            const auto now = d.context->memory();
            CHECK(now.library_objects == handles);
            CHECK(now.used >= before.used + handles * w.options.blas_workspace);
        }
        for (const auto& x : scratch)
            d.context->release(x.raw());
    }
}

TEST_CASE("an op that never ends condemns its context when hang_timeout is set")
{
    for_each_context([](context_world& w) {
        w.context.hang_timeout = 20ms;
        auto& driver = as_cuda(w).driver;
        test::gate never;
        {
            context_driver d(w);
            const auto x = d.floats(4);
            hold<inout<float>> hung(hold_lane{&w, never}, std::tuple(inout<float>(x)));
            exec<memory::fill<float>> behind(memory::fill<float>{x, 1.0f}, exec_options{});
            d.submit(hung);
            d.submit(behind);
            d.run_until([&] { return d.losses > 0; });
            CHECK(d.outcome(hung) == errc::context_lost);
            CHECK(d.outcome(behind) == errc::context_lost);
            const int calls = driver.calls();
            d.context->release(x.raw());
            (void)d.context->turn(clock::now());
            CHECK(driver.calls() == calls);
        }
        // Such a context is abandoned with all its resources, including the thread that strategy sync has in the
        // driver.
        never.open();
        CHECK(driver.violations().empty());
    });
}

TEST_CASE("a dropped context does not wait for an op that never ends when hang_timeout is set")
{
    for_each_context([](context_world& w) {
        w.context.hang_timeout = 20ms;
        test::gate never;
        {
            context_driver d(w);
            const auto x = d.floats(4);
            hold<inout<float>> hung(hold_lane{&w, never}, std::tuple(inout<float>(x)));
            d.submit(hung);
            never.wait_for(1);
            detail::async_op_list left;
            d.context->drop(left);
            CHECK(left.pop_front() == &hung);
        }
        never.open();
        CHECK(as_cuda(w).driver.violations().empty());
    });
}

TEST_CASE("an allocation that the driver refuses waits for memory that is freed behind an op in flight")
{
    for_each_context([](context_world& w) {
        auto& driver = as_cuda(w).driver;
        context_driver d(w);
        const auto x = d.floats(1024);
        test::gate gate;
        hold<in<float>> held(hold_lane{&w, gate}, std::tuple(in<float>(x)));
        d.submit(held);
        gate.wait_for(1);
        d.context->release(x.raw());
        driver.fail_from("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
        const int calls = driver.calls("cuMemAllocFromPoolAsync");
        test::allocate_request large(1 << 20);
        d.submit(large);
        // The second call follows a trim.
        d.run_until([&] { return driver.calls("cuMemAllocFromPoolAsync") >= calls + 2; });
        // So many that the second call has returned, on another thread, before the op in flight ends.
        for (int i = 0; i < 2000; ++i)
            (void)d.context->turn(clock::now());
        CHECK_FALSE(d.has_ended(large));
        driver.forgive();
        gate.open();
        d.run_until([&] { return d.has_ended(large); });
        CHECK_FALSE(d.outcome(large));
        d.run_until([&] { return d.has_ended(held); });
        driver.fail_from("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
        test::allocate_request more(1 << 22);
        CHECK(d.outcome_of(more) == errc::out_of_memory);
        driver.forgive();
        d.context->release(large.made.ref);
    });
}

TEST_CASE("no number of ops on a lane fills the driver's launch queue")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto x = d.floats(4);
        const auto y = d.floats(4);
        test::gate gate;
        hold<inout<float>> held(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
        held.options.lane = 0;
        d.submit(held);
        gate.wait_for(1);
        const exec_options on_lane{.lane = 0};
        std::deque<exec<memory::fill<float>>> single;
        for (int i = 0; i < 2000; ++i)
            d.submit(single.emplace_back(memory::fill<float>{x, static_cast<float>(i)}, on_lane));
        many_fills many(x, 4000);
        many.options = on_lane;
        d.submit(many);
        exec<memory::copy<float>> last(memory::copy<float>{x, y}, exec_options{.lane = 1});
        d.submit(last);
        (void)d.context->turn(clock::now());
        CHECK_FALSE(d.has_ended(many));
        gate.open();
        // Strategy sync may report the last one before those it waited for.
        d.run_until([&] { return d.ended.size() == single.size() + 3; });
        CHECK_FALSE(d.outcome(many));
        for (auto& r : single)
            CHECK_FALSE(d.outcome(r));
        CHECK(d.read(y) == std::vector<float>(4, 3999.0f));
        CHECK(as_cuda(w).driver.violations().empty());
    });
}

TEST_CASE("10,000 concurrent ops on several lanes do not fill the launch queue")
{
    auto w = test::contexts_under_test().front().make();
    context_driver d(*w);
    const ref<float> buffers[] = {d.floats(4), d.floats(4), d.floats(4)};
    std::deque<exec<memory::copy<float>>> all;
    for (int i = 0; i < 10'000; ++i) {
        // Each op waits for the one before it, which is on another lane.
        const memory::copy<float> op{buffers[i % 3], buffers[(i + 1) % 3]};
        d.submit(all.emplace_back(op, exec_options{.lane = i % 4}));
    }
    d.run_until([&] { return d.ended.size() == all.size(); });
    for (auto& r : all)
        CHECK_FALSE(d.outcome(r));
    CHECK(as_cuda(*w).driver.violations().empty());
}

TEST_CASE("buffers that are released behind ops in flight do not fill the launch queue")
{
    auto w = test::contexts_under_test().front().make();
    context_driver d(*w);
    const auto x = d.floats(4);
    const auto used = d.context->memory().used;
    std::deque<exec<memory::copy<float>>> all;
    // Two rounds: memory freed in the first must not limit the second.
    for (int round = 0; round < 2; ++round) {
        std::vector<ref<float>> buffers;
        for (int i = 0; i < 600; ++i)
            buffers.push_back(d.floats(4));
        test::gate gate;
        hold<inout<float>> held(hold_lane{w.get(), gate}, std::tuple(inout<float>(x)));
        held.options.lane = 0;
        d.submit(held);
        gate.wait_for(1);
        for (std::size_t i = 0; i < buffers.size(); i += 2) {
            const memory::copy<float> op{buffers[i], buffers[i + 1]};
            d.submit(all.emplace_back(op, exec_options{.lane = 0}));
            d.context->release(buffers[i].raw());
            d.context->release(buffers[i + 1].raw());
        }
        (void)d.context->turn(clock::now());
        gate.open();
        d.run_until([&] { return d.has_ended(held) && d.has_ended(all.back()); });
        d.ended.erase(&held);
    }
    for (auto& r : all)
        CHECK_FALSE(d.outcome(r));
    d.run_until([&] { return d.context->memory().used == used; });
    CHECK(as_cuda(*w).driver.violations().empty());
}

TEST_CASE("an error in the middle of many ops ends their request, and later requests run")
{
    for_each_context([](context_world& w) {
        auto& driver = as_cuda(w).driver;
        context_driver d(w);
        const auto x = d.floats(4);
        driver.fail("cuMemsetD32Async", CUDA_ERROR_INVALID_VALUE, 700);
        many_fills many(x, 2000);
        d.submit(many);
        exec<memory::fill<float>> behind(memory::fill<float>{x, 7.0f}, exec_options{});
        d.submit(behind);
        d.run_until([&] { return d.has_ended(many) && d.has_ended(behind); });
        CHECK(d.outcome(many));
        CHECK_FALSE(d.outcome(behind));
        CHECK(d.read(x) == std::vector<float>(4, 7.0f));
    });
}

TEST_CASE("a user's function may leave another context current")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto x = d.floats(4);
        manual<detail::submit_request<change_context, inout<float>>> careless(change_context{&as_cuda(w).driver.api()},
                                                                              std::tuple(inout<float>(x)));
        exec<memory::fill<float>> behind(memory::fill<float>{x, 1.0f}, exec_options{});
        d.submit(careless);
        d.submit(behind);
        d.run_until([&] { return d.has_ended(careless) && d.has_ended(behind); });
        CHECK_FALSE(d.outcome(careless));
        CHECK_FALSE(d.outcome(behind));
        CHECK(d.losses == 0);
    });
}

TEST_CASE("a host function that is never called delays an op, but does not lose it")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto x = d.floats(4);
        auto& driver = as_cuda(w).driver;
        driver.swallow_host_functions(true);
        const int called = driver.host_functions_called();
        test::gate gate;
        hold<inout<float>> held(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
        d.submit(held);
        gate.wait_for(1);
        // Enough turns for every strategy to arm its notification.
        for (int i = 0; i < 3; ++i)
            (void)d.context->turn(clock::now() + i * 1ms);
        gate.open();
        d.run_until([&] { return d.has_ended(held); });
        CHECK_FALSE(d.outcome(held));
        CHECK(driver.host_functions_called() == called);
    });
}

// The test passes its own points in time, far ahead of the clock.
TEST_CASE("the time until an op is completely enqueued does not count as a hang")
{
    for_each_context([](context_world& w) {
        w.context.hang_timeout = 20s;
        context_driver d(w);
        const auto x = d.floats(1u << 16);
        const std::vector<float> data(x.size(), 1.0f);
        exec<detail::write_op<float>> write(detail::write_op<float>{x, data.data(), data.size()}, exec_options{});
        auto& driver = as_cuda(w).driver;
        const int copies = driver.calls("cuMemcpyHtoDAsync");
        driver.hold_all(true);
        const auto start = clock::now();
        d.context->submit(write, start);
        (void)d.context->turn(start);
        while (driver.calls("cuMemcpyHtoDAsync") == copies)
            (void)d.context->turn(start + 30s);
        (void)d.context->turn(start + 40s);
        CHECK(d.context->accepting());
        driver.hold_all(false);
        d.run_until([&] { return d.has_ended(write); });
        CHECK_FALSE(d.outcome(write));
    });
}

TEST_CASE("a context is destroyed cleanly in the middle of a copy of pageable memory")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto x = d.floats(1u << 20);
        std::vector<float> data(x.size(), 1.0f);
        test::gate gate;
        hold<inout<float>> held(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
        exec<detail::write_op<float>> write(detail::write_op<float>{x, data.data(), data.size()}, exec_options{});
        d.submit(held);
        d.submit(write);
        gate.wait_for(1);
        (void)d.context->turn(clock::now());
        gate.open();
        detail::async_op_list dropped;
        d.context->drop(dropped);
        CHECK(dropped.pop_front());
    });
}

TEST_SUITE_END();
