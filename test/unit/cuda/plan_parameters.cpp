#include "cuda/driver/error.hpp"
#include "cuda_world.hpp"
#include "jit/image.hpp"
#include "jit/registry.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>

#include <doctest/doctest.h>

namespace test_cuda_plan_parameters {

// Launches with parameters in plans, over the fake driver, whose destructor reports what was left behind.
namespace {

using namespace coaccel;
using test::context_driver;
using test::cuda_world;
using test::fake_cuda;
using test::plan_run;
using test::test_instance;

/// A kernel y[0] = x[0] * by + plus.
struct launch_world {
    launch_world()
    {
        auto& driver = cuda.driver;
        const auto body = [&driver](const fake_cuda::launch&, void** a) {
            const auto* x = *static_cast<const float**>(a[0]);
            auto* y = *static_cast<float**>(a[1]);
            if (driver.touch(x, sizeof(float)) && driver.touch(y, sizeof(float)))
                *y = *x * *static_cast<const float*>(a[2]) + float(*static_cast<const double*>(a[3]));
        };
        driver.add_kernel("scale", body, {sizeof(float*), sizeof(float*), sizeof(float), sizeof(double)});
        auto made = std::make_shared<jit::image>();
        made->name = made->symbol = "scale";
        made->code = "code";
        kernel = jit::kernel(jit::register_image(std::move(made)));
    }

    /// The argument `by` is a parameter. `recordable`: all ops can be part of a graph.
    detail::plan_data plan(bool recordable = true) const
    {
        test::plan_maker m;
        const auto x = m.floats(slot_kind::input, 1);
        const auto by = m.floats(slot_kind::parameter, 1);
        const auto y = m.floats(slot_kind::output, 1);
        m.add(jit::launch(kernel, {}, in<float>(x), out<float>(y), 0.0f, 1.0));
        m.bind_field(2, by.raw());
        if (!recordable)
            m.add(blas::dot<float>{x, x, 1});
        return m.finish();
    }

    int updates() const { return cuda.driver.calls("cuGraphExecKernelNodeSetParams"); }

    cuda_world cuda;
    jit::kernel kernel;
};

void check_run(context_driver& d, const test_instance& i, float x, float by)
{
    plan_run r(i, {{x}, {by}});
    CHECK_FALSE(d.outcome_of(*r.request));
    CHECK(r.outputs[0] == std::vector<float>{x * by + 1});
}

} // namespace

TEST_SUITE_BEGIN("plan parameters");

TEST_CASE("the node of a launch is changed only when a value differs from that of the last run")
{
    launch_world w;
    context_driver d(w.cuda);
    const auto data = w.plan();
    test_instance i(d, data, 1, 1);
    REQUIRE_FALSE(i.load());
    CHECK(i.recorded);
    // The driver finds the nodes of the executable graph by those of the graph.
    CHECK(w.cuda.driver.graphs() == 1);
    CHECK(w.updates() == 0);
    check_run(d, i, 5, 0);
    CHECK(w.updates() == 0);
    check_run(d, i, 5, 2);
    check_run(d, i, 6, 2);
    CHECK(w.updates() == 1);
    check_run(d, i, 5, -3);
    CHECK(w.updates() == 2);
    CHECK_FALSE(i.unload());
    CHECK(w.cuda.driver.graphs() == 0);
    CHECK(w.cuda.driver.executable_graphs() == 0);
}

TEST_CASE("runs of several instances that are started together have their own values")
{
    for (const bool recordable : {true, false}) {
        CAPTURE(recordable);
        launch_world w;
        context_driver d(w.cuda);
        const auto data = w.plan(recordable);
        std::vector<std::unique_ptr<test_instance>> all;
        for (std::uint64_t id = 1; id <= 3; ++id) {
            all.push_back(std::make_unique<test_instance>(d, data, id, id));
            REQUIRE_FALSE(all.back()->load());
            CHECK(all.back()->recorded == recordable);
        }
        std::vector<std::unique_ptr<plan_run>> runs;
        for (int n = 0; n < 30; ++n) {
            runs.push_back(std::make_unique<plan_run>(*all[static_cast<std::size_t>(n % 3)],
                                                      test::float_arguments{{2}, {static_cast<float>(n)}},
                                                      exec_options{.lane = n % 2}));
            d.submit(*runs.back()->request);
        }
        d.run_until([&] { return d.ended.size() == runs.size(); });
        for (std::size_t n = 0; n < runs.size(); ++n) {
            CHECK_FALSE(d.outcome(*runs[n]->request));
            CHECK(runs[n]->outputs[0] == std::vector<float>{2 * static_cast<float>(n) + 1});
        }
        d.ended.clear();
        CHECK((w.updates() > 0) == recordable);
    }
}

TEST_CASE("a node that could not be changed is changed for the next run, even with the same value")
{
    launch_world w;
    context_driver d(w.cuda);
    const auto data = w.plan();
    test_instance i(d, data, 1, 1);
    REQUIRE_FALSE(i.load());
    check_run(d, i, 5, 2);
    w.cuda.driver.fail("cuGraphExecKernelNodeSetParams", CUDA_ERROR_INVALID_VALUE);
    plan_run bad(i, {{5}, {4}});
    CHECK(d.outcome_of(*bad.request) == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
    CHECK(bad.outputs[0] == std::vector<float>{-1});
    check_run(d, i, 5, 4);
}

TEST_CASE("a plan whose node is not found is not loaded, and leaves nothing")
{
    launch_world w;
    context_driver d(w.cuda);
    const auto data = w.plan();
    test_instance i(d, data, 1, 1);
    w.cuda.driver.fail_from("cuStreamGetCaptureInfo", CUDA_ERROR_INVALID_VALUE);
    CHECK(i.load() == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
    w.cuda.driver.forgive();
    CHECK(w.cuda.driver.graphs() == 0);
    CHECK(w.cuda.driver.executable_graphs() == 0);
    REQUIRE_FALSE(i.load());
    check_run(d, i, 1, 7);
}

TEST_SUITE_END();

} // namespace test_cuda_plan_parameters
