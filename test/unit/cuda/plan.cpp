#include "cuda/driver/error.hpp"
#include "cuda/plan/plan_recording.hpp"
#include "cuda_world.hpp"
#include "support/address_kernel.hpp"
#include "support/plan_parameter_cases.hpp"

#include <bit>
#include <cstdint>

// The plan ops on the CUDA backend, over the fake driver. Its destructor reports what was left behind.
namespace {

using test::cuda_world;

const exec_options other_lane{.lane = 1};

cuda_world& as_cuda(context_world& w)
{
    return static_cast<cuda_world&>(w);
}

/// Loads an instance of the plan with zeros in its constants and states.
std::unique_ptr<test_instance> make_instance(context_driver& d, const sum_plan& plan, std::uint64_t id,
                                             std::uint64_t chain = 1)
{
    auto made = std::make_unique<test_instance>(d, plan.data, id, chain);
    made->set(made->first_constant(), {0, 0, 0, 0});
    made->set(made->first_state(), {0, 0, 0, 0});
    return made;
}

void check_run(context_driver& d, const test_instance& i)
{
    plan_run r(i, {{1, 2, 3, 4}});
    CHECK_FALSE(d.outcome_of(*r.request));
    CHECK(r.outputs[0] == std::vector<float>{2, 4, 6, 8});
}

/// y = n, by n additions of 1, and perhaps an op that cannot be recorded.
detail::plan_data counting_plan(int n, bool recordable)
{
    plan_maker m;
    const auto one = m.floats(slot_kind::input, 4);
    const auto y = m.floats(slot_kind::output, 4);
    m.add(memory::fill<float>{y, 0});
    for (int k = 0; k < n; ++k) {
        m.add(blas::axpy<float>{.x = one, .y = y, .n = 4, .alpha = 1});
        if (!recordable)
            m.add(blas::dot<float>{one, one, 4});
    }
    return m.finish();
}

void run_all(context_driver& d, std::size_t count)
{
    d.run_until([&] { return d.losses > 0 || d.ended.size() == count; });
}

} // namespace

std::vector<test::context_setting> test::plan_contexts()
{
    std::vector<context_setting> all;
    std::uint64_t seed = 0;
    for (const auto& [name, options] : context_variants())
        all.push_back({name, true, [options = options, seed = ++seed] {
                           auto made = std::make_unique<cuda_world>(fake_cuda::settings{.seed = seed});
                           made->context = options;
                           return made;
                       }});
    return all;
}

/// The first instance makes a page of completion words, which the context keeps.
constexpr std::uint64_t page_of_words = 4096;

TEST_SUITE_BEGIN("plan ops");

TEST_CASE("an instance is one graph, and a run is one launch")
{
    for_each_plan_context([](context_world& w) {
        auto& driver = as_cuda(w).driver;
        context_driver d(w);
        const sum_plan plan;
        const auto i = make_instance(d, plan, 1);
        const auto pinned = d.context->memory().pinned_used;
        REQUIRE_FALSE(i->load());
        CHECK(i->recorded);
        CHECK(driver.executable_graphs() == 1);
        CHECK(driver.graphs() == 0);
        CHECK(d.context->memory().pinned_used > pinned);
        const int copies = driver.calls("cuMemcpyDtoDAsync");
        for (int n = 1; n <= 3; ++n) {
            check_run(d, *i);
            CHECK(driver.calls("cuGraphLaunch") == n);
        }
        CHECK(driver.calls("cuMemcpyDtoDAsync") == copies);
        CHECK_FALSE(i->unload());
        CHECK(driver.executable_graphs() == 0);
        CHECK(d.context->memory().pinned_used == pinned + page_of_words);
    });
}

TEST_CASE("a plan with an op that cannot be recorded runs op by op")
{
    for_each_plan_context([](context_world& w) {
        auto& driver = as_cuda(w).driver;
        context_driver d(w);
        const auto data = counting_plan(3, false);
        test_instance i(d, data, 1, 1);
        REQUIRE_FALSE(i.load());
        CHECK_FALSE(i.recorded);
        std::vector<std::unique_ptr<plan_run>> runs;
        for (int n = 0; n < 6; ++n) {
            runs.push_back(std::make_unique<plan_run>(i, test::float_arguments{std::vector<float>(4, float(n))},
                                                      exec_options{.lane = n % 2}));
            d.submit(*runs.back()->request);
        }
        run_all(d, runs.size());
        for (std::size_t n = 0; n < runs.size(); ++n) {
            CHECK_FALSE(d.outcome(*runs[n]->request));
            CHECK(runs[n]->outputs[0] == std::vector<float>(4, 3 * float(n)));
        }
        CHECK(driver.graph_launches() == 0);
        d.ended.clear();
        CHECK_FALSE(i.unload());
    });
}

TEST_CASE("tables of addresses are computed by the graph")
{
    for_each_plan_context([](context_world& w) {
        test::add_address_kernel(as_cuda(w).driver);
        context_driver d(w);
        plan_maker m;
        const auto x = m.floats(slot_kind::input, 6);
        const auto a = m.floats(slot_kind::constant, 6);
        const auto y = m.floats(slot_kind::output, 6);
        m.add(memory::copy<float>{x, y});
        // The second op needs larger tables than the first one.
        m.add(blas::trsm_batched<float>{
            .a = a, .b = y, .m = 1, .n = 1, .batch = 2, .stride_a = 1, .stride_b = 3, .alpha = 2});
        m.add(blas::trsm_batched<float>{
            .a = a.subspan(5, 1), .b = y, .m = 1, .n = 1, .batch = 6, .stride_b = 1, .alpha = 1});
        const auto data = m.finish();
        std::vector<std::unique_ptr<test_instance>> all;
        for (std::uint64_t id = 1; id <= 2; ++id) {
            all.push_back(std::make_unique<test_instance>(d, data, id, id));
            all.back()->set(all.back()->first_constant(), {2, 4, 0, 0, 0, 8});
            REQUIRE_FALSE(all.back()->load());
            CHECK(all.back()->recorded);
        }
        for (int round = 1; round < 4; ++round)
            for (auto& i : all) {
                const auto by = static_cast<float>(round);
                plan_run r(*i, {{8 * by, 8, 16, 32 * by, 40, 48}});
                CHECK_FALSE(d.outcome_of(*r.request));
                CHECK(r.outputs[0] == std::vector<float>{by, 1, 2, 2 * by, 5, 6});
            }
        for (auto& i : all)
            CHECK_FALSE(i->unload());
    });
}

TEST_CASE("cuBLAS never gets pivots outside of the matrix, neither while a plan is loaded nor from a caller")
{
    for_each_plan_context([](context_world& w) {
        test::add_address_kernel(as_cuda(w).driver);
        context_driver d(w);
        plan_maker m;
        const auto x = m.floats(slot_kind::input, 3);
        const auto pivots = m.slot<std::int32_t>(slot_kind::input, 3);
        const auto a = m.floats(slot_kind::constant, 3);
        const auto y = m.floats(slot_kind::output, 3);
        m.add(memory::copy<float>{x, y});
        m.add(blas::getrs_batched<float>{
            .a = a, .pivots = pivots, .b = y, .n = 1, .nrhs = 1, .batch = 3, .stride_a = 1, .stride_b = 1});
        const auto data = m.finish();
        test_instance i(d, data, 1, 1);
        i.set(i.first_constant(), {2, 4, 8});
        REQUIRE_FALSE(i.load());
        CHECK(i.recorded);
        const auto given = [](std::int32_t pivot) { return std::bit_cast<float>(pivot); };
        plan_run r(i, {{2, 8, 24}, {given(1), given(0), given(1 << 30)}});
        CHECK_FALSE(d.outcome_of(*r.request));
        CHECK(r.outputs[0] == std::vector<float>{1, 2, 3});
        CHECK_FALSE(i.unload());
        CHECK(as_cuda(w).driver.violations().empty());
    });
}

TEST_CASE("no number of ops fills the driver's launch queue")
{
    for (const bool recordable : {true, false}) {
        CAPTURE(recordable);
        const auto w = test::plan_contexts().front().make();
        context_driver d(*w);
        // Recorded on the thread pool.
        constexpr int n = cuda::plan_recording::most_ops_captured_here + 500;
        const auto data = counting_plan(n, recordable);
        test_instance i(d, data, 1, 1);
        REQUIRE_FALSE(i.load());
        CHECK(i.recorded == recordable);
        plan_run r(i, {{1, 1, 1, 1}});
        CHECK_FALSE(d.outcome_of(*r.request));
        CHECK(r.outputs[0] == std::vector<float>(4, n));
        CHECK(as_cuda(*w).driver.violations().empty());
    }
}

TEST_CASE("an op that fails in the middle of a run ends it, and the next run works")
{
    for_each_plan_context([](context_world& w) {
        auto& driver = as_cuda(w).driver;
        context_driver d(w);
        const auto data = counting_plan(3, false);
        test_instance i(d, data, 1, 1);
        REQUIRE_FALSE(i.load());
        as_cuda(w).blas.fail("cublasSdot", CUBLAS_STATUS_INVALID_VALUE, 2);
        plan_run bad(i, {{1, 1, 1, 1}});
        CHECK(d.outcome_of(*bad.request));
        CHECK(bad.outputs[0] == std::vector<float>(4, -1));
        plan_run good(i, {{1, 1, 1, 1}});
        CHECK_FALSE(d.outcome_of(*good.request));
        CHECK(good.outputs[0] == std::vector<float>(4, 3));
        CHECK(driver.violations().empty());
    });
}

TEST_CASE("a failed launch ends its run, and leaves the outputs alone")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan plan;
        const auto i = make_instance(d, plan, 1);
        REQUIRE_FALSE(i->load());
        as_cuda(w).driver.fail("cuGraphLaunch", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        plan_run bad(*i, {{1, 2, 3, 4}});
        CHECK(d.outcome_of(*bad.request) == cuda::make_error(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
        CHECK(bad.outputs[0] == std::vector<float>(4, -1));
        check_run(d, *i);
    });
}

TEST_CASE("a capture that is invalidated is repeated, but not for ever")
{
    for_each_plan_context([](context_world& w) {
        auto& driver = as_cuda(w).driver;
        context_driver d(w);
        const sum_plan plan;
        const auto i = make_instance(d, plan, 1);
        driver.fail("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        REQUIRE_FALSE(i->load());
        CHECK(driver.calls("cuStreamEndCapture") == 2);
        check_run(d, *i);

        const auto j = make_instance(d, plan, 2);
        driver.fail_from("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CHECK(j->load() == cuda::make_error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
        CHECK(driver.calls("cuStreamEndCapture") == 2 + cuda::plan_recording::most_captures);
        driver.forgive();
        CHECK(driver.graphs() == 0);
        CHECK(driver.executable_graphs() == 1);
        REQUIRE_FALSE(j->load());
        check_run(d, *j);
        CHECK(j->get(j->first_state()) == std::vector<float>{2, 4, 6, 8});
    });
}

TEST_CASE("a call that a capture does not allow is repeated outside of it")
{
    for_each_plan_context([](context_world& w) {
        auto& driver = as_cuda(w).driver;
        context_driver d(w);
        const sum_plan plan;
        const auto i = make_instance(d, plan, 1);
        // The first call is the copy of the warm-up.
        driver.fail("cuMemcpyDtoDAsync", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 3);
        REQUIRE_FALSE(i->load());
        CHECK(driver.calls("cuStreamBeginCapture") == 2);
        check_run(d, *i);
    });
}

TEST_CASE("a graph that cannot be instantiated or uploaded ends the load, which may be repeated")
{
    for (const char* function : {"cuGraphInstantiateWithFlags", "cuGraphUpload"}) {
        CAPTURE(function);
        for_each_plan_context([&](context_world& w) {
            auto& driver = as_cuda(w).driver;
            context_driver d(w);
            const sum_plan plan;
            const auto i = make_instance(d, plan, 1);
            driver.fail(function, CUDA_ERROR_OUT_OF_MEMORY);
            CHECK(i->load() == errc::out_of_memory);
            CHECK(driver.graphs() == 0);
            CHECK(driver.executable_graphs() == 0);
            REQUIRE_FALSE(i->load());
            check_run(d, *i);
        });
    }
}

TEST_CASE("a load without memory fails and keeps nothing")
{
    struct row {
        const char* function;
        CUresult result;
        std::uint64_t kept;
    };
    for (const row& r : {row{"cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY, 0},
                         row{"cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, page_of_words},
                         row{"cuStreamCreateWithPriority", CUDA_ERROR_OUT_OF_MEMORY, 0}}) {
        CAPTURE(r.function);
        for_each_plan_context([&](context_world& w) {
            auto& driver = as_cuda(w).driver;
            // Otherwise the lane of the load would have to be made too.
            w.context.lanes = lane_policy::single();
            context_driver d(w);
            const sum_plan plan;
            const auto i = make_instance(d, plan, 1);
            const auto pinned = d.context->memory().pinned_used;
            driver.fail_from(r.function, r.result);
            CHECK(i->load() == errc::out_of_memory);
            driver.forgive();
            CHECK(d.context->memory().pinned_used == pinned + r.kept);
            REQUIRE_FALSE(i->load());
            check_run(d, *i);
        });
    }
}

TEST_CASE("chains that are no longer used leave their streams to others")
{
    const auto w = test::plan_contexts().front().make();
    // Each of the streams has a handle; no op runs on a lane.
    const auto& blas = as_cuda(*w).blas;
    context_driver d(*w);
    const sum_plan plan;
    const auto i = make_instance(d, plan, 1, 1);
    REQUIRE_FALSE(i->load());
    CHECK(blas.handles() == 1);
    const auto same = make_instance(d, plan, 2, 1);
    REQUIRE_FALSE(same->load());
    CHECK(blas.handles() == 1);
    REQUIRE_FALSE(i->unload());
    const auto other = make_instance(d, plan, 3, 2);
    REQUIRE_FALSE(other->load());
    CHECK(blas.handles() == 2);
    REQUIRE_FALSE(same->unload());
    const auto third = make_instance(d, plan, 4, 3);
    REQUIRE_FALSE(third->load());
    CHECK(blas.handles() == 2);
    check_run(d, *other);
    check_run(d, *third);
}

TEST_CASE("two runs of an instance in one request have their own arguments")
{
    class two_runs final : public detail::request {
    public:
        two_runs(plan_run& a, plan_run& b) : bound_{a.request->ops.front(), b.request->ops.front()} { ops = bound_; }
        void post() override {}
        void destroy() noexcept override {}

    private:
        std::array<bound_op, 2> bound_;
    };
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan plan;
        const auto i = make_instance(d, plan, 1);
        REQUIRE_FALSE(i->load());
        plan_run a(*i, {{1, 1, 1, 1}});
        plan_run b(*i, {{2, 2, 2, 2}});
        two_runs both(a, b);
        CHECK_FALSE(d.outcome_of(both));
        CHECK(a.outputs[0] == std::vector<float>(4, 2));
        CHECK(b.outputs[0] == std::vector<float>(4, 4));
    });
}

TEST_CASE("a context that dies while a plan is recorded ends the load")
{
    for (const char* function : {"cuModuleLoadData", "cuLaunchKernel", "cuStreamBeginCapture", "cuStreamEndCapture",
                                 "cuGraphInstantiateWithFlags", "cuGraphUpload", "cuStreamSynchronize"}) {
        CAPTURE(function);
        for_each_plan_context([&](context_world& w) {
            context_driver d(w);
            const sum_plan plan;
            const auto i = make_instance(d, plan, 1);
            const auto load = i->make_load();
            as_cuda(w).driver.fail(function, CUDA_ERROR_ILLEGAL_ADDRESS);
            d.submit(*load);
            d.run_until([&] { return d.losses > 0; });
            CHECK(d.outcome(*load));
        });
    }
}

TEST_CASE("a context may die at any command of a load, a run and an unload")
{
    for (int n = 1; n <= 40; ++n) {
        CAPTURE(n);
        const auto w = test::plan_contexts()[static_cast<std::size_t>(n) % test::plan_contexts().size()].make();
        context_driver d(*w);
        const sum_plan plan;
        const auto i = make_instance(d, plan, 1);
        const auto load = i->make_load();
        plan_run r(*i, {{1, 2, 3, 4}});
        exec<detail::plan_unload_op> unload(detail::plan_unload_op{i->id, i->chain}, other_lane);
        as_cuda(*w).driver.kill_at(CUDA_ERROR_ILLEGAL_ADDRESS, n);
        d.submit(*load);
        d.submit(*r.request);
        d.submit(unload);
        d.run_until([&] { return d.ended.size() == 3; });
    }
}

TEST_CASE("whichever driver call of a load, a run and an unload fails, nothing is left behind")
{
    for (const auto function : test::fake_cuda::function_names())
        for (const int nth : {1, 2, 4}) {
            // Without a current context no call works. The driver keeps memory that it does not unregister.
            if (function.starts_with("cuCtx") || function == "cuMemHostUnregister")
                continue;
            CAPTURE(function);
            CAPTURE(nth);
            cuda_world w;
            context_driver d(w);
            const sum_plan plan;
            const auto i = make_instance(d, plan, 1);
            const auto load = i->make_load();
            plan_run r(*i, {{1, 2, 3, 4}});
            exec<detail::plan_unload_op> unload(detail::plan_unload_op{i->id, i->chain}, other_lane);
            w.driver.fail(function, CUDA_ERROR_INVALID_VALUE, nth);
            d.submit(*load);
            d.submit(*r.request);
            d.submit(unload);
            d.run_until([&] { return d.ended.size() == 3; });
            w.driver.forgive();
            if (d.losses == 0) {
                const auto again = make_instance(d, plan, 2);
                REQUIRE_FALSE(again->load());
                check_run(d, *again);
            }
            CHECK(w.driver.violations().empty());
        }
}

TEST_CASE("a context is destroyed with a graph that computes tables of addresses")
{
    for_each_plan_context([](context_world& w) {
        test::add_address_kernel(as_cuda(w).driver);
        context_driver d(w);
        plan_maker m;
        const auto a = m.floats(slot_kind::input, 2);
        const auto y = m.floats(slot_kind::output, 2);
        m.add(memory::fill<float>{y, 4});
        m.add(blas::trsm_batched<float>{.a = a, .b = y, .m = 1, .n = 1, .batch = 2, .stride_a = 1, .stride_b = 1});
        const auto data = m.finish();
        test_instance i(d, data, 1, 1);
        REQUIRE_FALSE(i.load());
        CHECK(i.recorded);
        plan_run r(i, {{1, 2}});
        CHECK_FALSE(d.outcome_of(*r.request));
        CHECK(r.outputs[0] == std::vector<float>{4, 2});
    });
}

TEST_CASE("a context is destroyed with loaded instances, and in the middle of a load")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan plan;
        const auto i = make_instance(d, plan, 1);
        const auto unrecorded = counting_plan(300, false);
        test_instance j(d, unrecorded, 2, 2);
        REQUIRE_FALSE(i->load());
        REQUIRE_FALSE(j.load());
        check_run(d, *i);
        plan_run r(j, {{1, 1, 1, 1}});
        const auto k = make_instance(d, plan, 3);
        const auto load = k->make_load();
        d.submit(*r.request);
        d.submit(*load);
        for (int n = 0; n < 5; ++n)
            (void)d.context->turn(detail::clock::now());
        detail::async_op_list left;
        d.context->drop(left);
        while (left.pop_front())
            ;
    });
}

TEST_SUITE_END();
