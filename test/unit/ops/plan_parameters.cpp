#include "support/device_fixture.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace test_ops_plan_parameters {

// Plans with parameters on any device.
namespace {

using namespace coaccel;
using test::await;

/// y = alpha * w * x + beta * x, and z = factor * w * w, with w of 4 by 4 elements; all three are parameters.
plan_description factors_plan()
{
    using gemv = blas::gemv<float>;
    using gemm = blas::gemm<double>;
    std::vector<float> w(16);
    for (std::size_t i = 0; i < w.size(); ++i)
        w[i] = static_cast<float>(i % 5);
    plan_builder b("factors");
    const auto alpha = b.parameter<float>("alpha");
    const auto x = b.input<float>(4, "x");
    const auto beta = b.parameter<float>("beta");
    const auto weights = b.constant<float>(w);
    const auto doubles = b.constant<double>(std::vector<double>(w.begin(), w.end()));
    const auto y = b.output<float>(4, "y");
    const auto z = b.output<double>(16, "z");
    const auto factor = b.parameter<double>("factor");
    b.add(memory::copy<float>{x, y});
    b.add(gemv{.a = weights, .x = x, .y = y, .m = 4, .n = 4}, bind(&gemv::alpha, alpha), bind(&gemv::beta, beta));
    b.add(gemm{.a = doubles, .b = doubles, .c = z, .m = 4, .n = 4, .k = 4}, bind(&gemm::alpha, factor));
    return b.finish().value();
}

struct results {
    std::vector<float> y = std::vector<float>(4);
    std::vector<double> z = std::vector<double>(16);

    bool operator==(const results&) const = default;
};

/// Computed with whole numbers, so the order of the sums does not matter.
results expected(const std::vector<float>& x, float alpha, float beta, double factor)
{
    const auto w = [](std::size_t i, std::size_t k) { return static_cast<float>((i + 4 * k) % 5); };
    results made;
    for (std::size_t i = 0; i < 4; ++i) {
        float sum = 0;
        for (std::size_t k = 0; k < 4; ++k)
            sum += w(i, k) * x[k];
        made.y[i] = alpha * sum + beta * x[i];
        for (std::size_t j = 0; j < 4; ++j) {
            double cell = 0;
            for (std::size_t k = 0; k < 4; ++k)
                cell += double(w(i, k)) * double(w(k, j));
            made.z[i + 4 * j] = factor * cell;
        }
    }
    return made;
}

plan load(test::device_fixture& f, const plan_description& d, plan_options how = {})
{
    auto made = await(f.io, f.gpu.async_load(d, how));
    REQUIRE_MESSAGE(made, made.error().message());
    return std::move(made).value();
}

TEST_SUITE_BEGIN("plan parameters");

TEST_CASE("each run has its own values, also with many runs at once")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const plan p = load(f, factors_plan(), {.instances = 5});
        constexpr int runs = 40;
        const std::vector<float> x{1, 2, 3, 4};
        std::vector<results> got(runs);
        int ended = 0;
        for (int i = 0; i < runs; ++i) {
            auto alpha = static_cast<float>(i % 4 - 1);
            p.async_run(value(alpha), from(x), value(static_cast<float>(i % 3)), to(got[i].y), to(got[i].z),
                        value(double(i)), [&](error_code ec) {
                            CHECK_FALSE(ec);
                            ++ended;
                        });
            // The value was copied.
            alpha = 1000;
        }
        test::run_until(f.io, [&] { return ended == runs; });
        for (int i = 0; i < runs; ++i) {
            CAPTURE(i);
            CHECK(got[i] == expected(x, static_cast<float>(i % 4 - 1), static_cast<float>(i % 3), i));
        }
    }
}

TEST_CASE("a vector is scaled and added with parameters as factors")
{
    using axpy = blas::axpy<double>;
    using scal = blas::scal<double>;
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        plan_builder b;
        const auto x = b.input<double>(3);
        const auto y = b.output<double>(3);
        const auto by = b.parameter<double>();
        b.add(memory::copy<double>{x, y});
        b.add(scal{.x = y, .n = 3}, bind(&scal::alpha, by));
        b.add(axpy{.x = x, .y = y, .n = 3}, bind(&axpy::alpha, by));
        const plan p = load(f, b.finish().value());
        const std::vector<double> given{1, 2, 3};
        for (const double factor : {2.0, -0.5, 0.0, 7.0}) {
            std::vector<double> got(3);
            REQUIRE(await(f.io, p.async_run(from(given), value(factor), to(got))));
            CHECK(got == std::vector<double>{2 * factor, 4 * factor, 6 * factor});
        }
    }
}

TEST_CASE("values that do not match the parameters are refused with the names of plan and parameter")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const plan p = load(f, factors_plan());
        const std::vector<float> x(4);
        results r;
        const auto refusal = [&](auto operation, errc expected) {
            const auto ended = await(f.io, std::move(operation));
            REQUIRE_FALSE(ended);
            CHECK(ended.error() == expected);
            return ended.error().message();
        };
        CHECK(refusal(p.async_run(from(x), to(r.y), to(r.z), value(1.0f), value(2.0f)), errc::invalid_argument) ==
              "plan factors: parameter factor is missing");
        CHECK(refusal(p.async_run(from(x), to(r.y), to(r.z)), errc::invalid_argument) ==
              "plan factors: parameter alpha is missing");
        CHECK(refusal(p.async_run(from(x), to(r.y), to(r.z), value(1.0f), value(2.0), value(3.0)), errc::wrong_dtype) ==
              "plan factors: parameter beta is of type f32, given f64");
        CHECK(refusal(p.async_run(from(x), to(r.y), to(r.z), value(1.0f), value(2.0f), value(3.0), value(4.0)),
                      errc::invalid_argument) == "plan factors: parameters: the plan has 3, given 4");
        REQUIRE(await(f.io, p.async_run(from(x), to(r.y), to(r.z), value(1.0f), value(2.0f), value(3.0))));
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_ops_plan_parameters
