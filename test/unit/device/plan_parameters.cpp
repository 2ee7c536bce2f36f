#include "../jit/support.hpp"
#include "support/device_fixture.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace test_device_plan_parameters {

namespace {

using namespace coaccel;
using test::await;

constexpr unsigned count = 8;

void scale(const jit::launch_shape&, const float* x, float* y, float by, std::int64_t plus)
{
    for (unsigned i = 0; i < count; ++i)
        y[i] = x[i] * by + static_cast<float>(plus);
}

} // namespace

TEST_SUITE_BEGIN("plan parameters");

TEST_CASE("the arguments of a kernel differ from run to run, also with many runs at once")
{
    for (const auto& options : {test::pool_options(), test::inline_options()}) {
        test::device_fixture f(options);
        const auto k = test::make_kernel(jit::compile_options("scale").host(scale), "scale");
        plan_builder b("kernels");
        const auto x = b.input<float>(count);
        const auto t = b.scratch<float>(count);
        const auto y = b.output<float>(count);
        const auto by = b.parameter<float>("by");
        const auto plus = b.parameter<std::int64_t>("plus");
        b.add(jit::launch(k, {}, in<float>(x), out<float>(t), by, plus));
        b.add(jit::launch(k, {}, in<float>(t), out<float>(y), 10.0f, plus));
        const auto p = await(f.io, f.gpu.async_load(b.finish().value(), {.instances = 4})).value();
        constexpr int runs = 40;
        const std::vector<float> given(count, 3);
        std::vector<std::vector<float>> got(runs, std::vector<float>(count));
        int ended = 0;
        for (int i = 0; i < runs; ++i)
            p.async_run(from(given), to(got[i]), value(static_cast<float>(i)), value(std::int64_t(i % 5)),
                        [&](error_code ec) {
                            CHECK_FALSE(ec);
                            ++ended;
                        });
        test::run_until(f.io, [&] { return ended == runs; });
        for (int i = 0; i < runs; ++i)
            CHECK(got[i] == std::vector<float>(count, static_cast<float>((3 * i + i % 5) * 10 + i % 5)));
    }
}

TEST_CASE("a run that waits for an instance keeps its values")
{
    test::device_fixture f(test::pool_options());
    using scal = blas::scal<float>;
    plan_builder b("state");
    const auto s = b.state<float>(std::vector<float>{1});
    b.add(scal{.x = s, .n = 1}, bind(&scal::alpha, b.parameter<float>()));
    const auto y = b.output<float>(1);
    b.add(blas::copy<float>{.x = s, .y = y, .n = 1});
    const auto p = await(f.io, f.gpu.async_load(b.finish().value(), {.instances = 1})).value();
    std::vector<std::vector<float>> got(6, std::vector<float>(1));
    std::size_t ended = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
        p.async_run(value(static_cast<float>(i + 1)), to(got[i]), [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
    test::run_until(f.io, [&] { return ended == got.size(); });
    float product = 1;
    for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i][0] == (product *= static_cast<float>(i + 1)));
}

TEST_SUITE_END();

} // namespace test_device_plan_parameters
