#include "support/matmul_case.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace test_ops_blas_matmul_fp8 {

namespace {

using namespace coaccel;
using blas::activation;
using blas::order;
using blas::transpose;
using test::addend;
using test::device_fixture;
using test::engine;
using test::every_order;
using test::factor_scales;
using test::matmul_config;

/// `lines`: the rows of D in column-major order, its columns in row-major order; a multiple of 16.
struct fp8_shape {
    std::size_t lines, others, k, extra, gap, batch;
    activation what;
};

constexpr fp8_shape shapes[] = {
    {16, 1, 16, 0, 0, 1, activation::none},  {16, 5, 32, 1, 0, 1, activation::relu},
    {48, 33, 16, 0, 0, 1, activation::gelu}, {32, 7, 112, 2, 1, 3, activation::none},
    {64, 16, 64, 0, 0, 2, activation::gelu},
};

constexpr factor_scales every_scale[] = {factor_scales::none, factor_scales::a, factor_scales::b, factor_scales::both,
                                         factor_scales::lines};

/// Whether the device has computed it. Reports other errors; false for a GPU that cannot do it.
bool passed(const error_code& failed, const std::string& difference)
{
    if (failed && test::lacks_fp8(failed)) {
        MESSAGE("not run: " << failed.message());
        return false;
    }
    CHECK(difference == "");
    return true;
}

template <class Op>
bool check_product(device_fixture& f, engine& random, bool gpu, const matmul_config& how)
{
    CAPTURE(how);
    error_code failed;
    const auto difference = test::matmul_case<Op>(how, random).run(f, gpu, failed);
    return passed(failed, difference);
}

matmul_config config_of(const fp8_shape& s, order storage)
{
    const bool by_rows = storage == order::row_major;
    return {.m = by_rows ? s.others : s.lines,
            .n = by_rows ? s.lines : s.others,
            .k = s.k,
            .storage = storage,
            .trans_a = by_rows ? transpose::no : transpose::yes,
            .trans_b = by_rows ? transpose::yes : transpose::no,
            .extra = s.extra,
            .gap = s.gap,
            .batch = s.batch,
            .what = s.what,
            .alpha = 0.5};
}

/// Products with each of these kinds of C and factors of it. Returns false if the device cannot compute them.
template <class Op>
bool check_addends(device_fixture& f, engine& random, bool gpu, matmul_config how)
{
    for (const auto c : {addend::previous, addend::own, addend::common})
        for (const double beta : {0.0, -0.5})
            for (const bool bias : {false, true}) {
                // Nothing is added to a previous result of fp8.
                if (blas::float8_element<typename Op::value_type> && c == addend::previous && beta != 0)
                    continue;
                how.c = c;
                how.beta = beta;
                how.bias = bias;
                if (!check_product<Op>(f, random, gpu, how))
                    return false;
            }
    return true;
}

/// Every shape in both orders with each kind of scales, and every kind of C, with and without a bias.
template <class Op>
void check_fp8()
{
    constexpr bool narrow = blas::float8_element<typename Op::value_type>;
    test::on_every_device([](device_fixture& f, engine& random) {
        const bool gpu = test::is_gpu(f);
        for (const auto storage : every_order) {
            for (const auto& s : shapes)
                for (const auto scales : every_scale) {
                    if (scales == factor_scales::lines && (narrow || s.batch > 1))
                        continue;
                    auto how = config_of(s, storage);
                    how.scales = scales;
                    how.c = random() % 2 == 0 ? addend::own : addend::common;
                    how.beta = random() % 2 == 0 ? 0 : 1;
                    how.bias = random() % 2 == 0;
                    how.one_a = s.batch > 1 && random() % 2 == 0;
                    how.scale_d = narrow && random() % 2 == 0;
                    how.amax_d = narrow && random() % 2 == 0;
                    if (!check_product<Op>(f, random, gpu, how))
                        return;
                }
            for (const auto what : test::every_activation)
                if (!check_addends<Op>(f, random, gpu, config_of({16, 5, 32, 1, 1, 2, what}, storage)))
                    return;
        }
    });
}

/// Small whole numbers, for which all sums are exact.
template <class T>
std::vector<T> whole_numbers(std::size_t count, engine& random)
{
    std::vector<T> made(count);
    for (auto& x : made)
        x = T(static_cast<float>(random() % 9) - 4);
    return made;
}

} // namespace

TEST_SUITE_BEGIN("blas matmul of fp8");

TEST_CASE_TEMPLATE("results in f16", Op, blas::matmul<float8_e4m3, half>, blas::matmul<float8_e5m2, half>,
                   blas::matmul<float8_e4m3, half, float8_e5m2>)
{
    check_fp8<Op>();
}

TEST_CASE_TEMPLATE("results in bf16", Op, blas::matmul<float8_e4m3>, blas::matmul<float8_e5m2>,
                   blas::matmul<float8_e4m3, bfloat16, float8_e5m2>)
{
    check_fp8<Op>();
}

TEST_CASE_TEMPLATE("results in f32 have a bias in bf16", Op, blas::matmul<float8_e4m3, float>,
                   blas::matmul<float8_e5m2, float>, blas::matmul<float8_e4m3, float, float8_e5m2>)
{
    static_assert(std::is_same_v<typename Op::bias_type, bfloat16> && std::is_same_v<typename Op::addend_type, float>);
    check_fp8<Op>();
}

TEST_CASE_TEMPLATE("results in fp8 have C and a bias in bf16", Op, blas::matmul<float8_e4m3, float8_e4m3>,
                   blas::matmul<float8_e5m2, float8_e4m3>, blas::matmul<float8_e4m3, float8_e4m3, float8_e5m2>,
                   blas::matmul<float8_e5m2, float8_e5m2>, blas::matmul<float8_e4m3, float8_e5m2, float8_e5m2>)
{
    static_assert(std::is_same_v<typename Op::bias_type, bfloat16> &&
                  std::is_same_v<typename Op::addend_type, bfloat16>);
    check_fp8<Op>();
}

TEST_CASE_TEMPLATE("amax_d is exactly the greatest magnitude before scale_d, whatever was there before", Op,
                   blas::matmul<float8_e4m3, float8_e4m3>, blas::matmul<float8_e5m2, float8_e4m3>,
                   blas::matmul<float8_e4m3, float8_e5m2, float8_e5m2>, blas::matmul<float8_e5m2, float8_e5m2>)
{
    using A = typename Op::source_type;
    using B = typename Op::second_type;
    using D = typename Op::value_type;
    constexpr std::size_t m = 32, n = 6, k = 48, batch = 2;
    test::on_every_device([](device_fixture& f, engine& random) {
        const auto a = whole_numbers<A>(m * k * batch, random);
        const auto b = whole_numbers<B>(k * n * batch, random);
        const auto bias = whole_numbers<bfloat16>(m, random);
        const auto da = f.upload(a);
        const auto db = f.upload(b);
        const auto dbias = f.upload(bias);
        const auto quarter = f.upload(std::vector<float>{0.25F}), two = f.upload(std::vector<float>{2});
        for (const auto what : {activation::none, activation::relu})
            for (const float before : {0.0F, 1e30F, std::nanf("")}) {
                CAPTURE(what);
                CAPTURE(before);
                const auto d = f.alloc<D>(m * n * batch);
                const auto amax = f.upload(std::vector<float>{before});
                const auto done = test::exec_listed(f, Op{.a = da,
                                                          .b = db,
                                                          .d = d,
                                                          .bias = dbias,
                                                          .scale_a = quarter,
                                                          .scale_b = two,
                                                          .scale_d = quarter,
                                                          .amax_d = amax,
                                                          .m = m,
                                                          .n = n,
                                                          .k = k,
                                                          .batch = batch,
                                                          .stride_a = m * k,
                                                          .stride_b = k * n,
                                                          .stride_d = m * n,
                                                          .alpha = -1,
                                                          .trans_a = transpose::yes,
                                                          .activation = what});
                if (!passed(done ? error_code() : done.error(), done ? "" : done.error().message()))
                    return;
                float most = 0;
                const auto got = f.download(d);
                for (std::size_t one = 0; one < batch; ++one)
                    for (std::size_t j = 0; j < n; ++j)
                        for (std::size_t i = 0; i < m; ++i) {
                            float sum = 0;
                            for (std::size_t p = 0; p < k; ++p)
                                sum += float(a[one * m * k + p + i * k]) * float(b[one * k * n + p + j * k]);
                            sum = -0.5F * sum + float(bias[i]);
                            if (what == activation::relu)
                                sum = std::max(sum, 0.0F);
                            most = std::max(most, std::abs(sum));
                            CHECK(float(got[one * m * n + i + j * m]) == float(D(0.25F * sum)));
                        }
                CHECK(f.download(amax) == std::vector<float>{most});
            }
    });
}

TEST_CASE_TEMPLATE("a result that fp8 cannot represent is its greatest number, and amax_d the magnitude itself", Op,
                   blas::matmul<float8_e4m3, float8_e4m3>, blas::matmul<float8_e4m3, float8_e5m2, float8_e5m2>)
{
    using D = typename Op::value_type;
    constexpr std::size_t side = 16;
    test::on_every_device([](device_fixture& f, engine&) {
        std::vector<float8_e4m3> a(side * side, float8_e4m3(256.0F));
        std::fill_n(a.begin(), side, float8_e4m3(-256.0F));
        const auto da = f.upload(a);
        const auto db = f.upload(std::vector<typename Op::second_type>(side, typename Op::second_type(256.0F)));
        const auto d = f.alloc<D>(side);
        const auto amax = f.alloc<float>(1);
        const auto done = test::exec_listed(
            f, Op{.a = da, .b = db, .d = d, .amax_d = amax, .m = side, .n = 1, .k = side, .trans_a = transpose::yes});
        if (!passed(done ? error_code() : done.error(), done ? "" : done.error().message()))
            return;
        const float greatest = std::is_same_v<D, float8_e4m3> ? 448 : 57344;
        std::vector<D> wanted(side, D(greatest));
        wanted[0] = D(-greatest);
        const auto got = f.download(d);
        CHECK(std::ranges::equal(got, wanted, [](D x, D y) { return float(x) == float(y); }));
        CHECK(f.download(amax) == std::vector<float>{256 * 256 * side});
    });
}

TEST_CASE("a scale for each row and column may be one scale for a single row or column")
{
    using op = blas::matmul<float8_e4m3, float>;
    test::on_every_device([](device_fixture& f, engine& random) {
        const bool gpu = test::is_gpu(f);
        for (const auto storage : every_order) {
            auto how = config_of({32, 1, 48, 0, 0, 1, activation::none}, storage);
            how.scales = factor_scales::lines;
            if (!check_product<op>(f, random, gpu, how))
                return;
        }
    });
}

TEST_CASE(
    "a result of fp8 with a factor that is a parameter needs C, because a GPU then does not know that beta is zero")
{
    using op = blas::matmul<float8_e4m3, float8_e4m3>;
    constexpr std::size_t side = 16;
    const auto described = [](bool with_c) {
        plan_builder b("scaled");
        const auto x = b.input<float8_e4m3>(side * side);
        const auto c = b.input<bfloat16>(side * side);
        const auto y = b.output<float8_e4m3>(side * side);
        op o{.a = x, .b = x, .d = y, .m = side, .n = side, .k = side, .trans_a = transpose::yes};
        if (with_c)
            o.c = c;
        b.add(o, bind(&op::alpha, b.parameter<float>("alpha")));
        return b.finish();
    };
    const auto refused = described(false);
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(refused.error().message() ==
          "plan scaled: op 1 (blas.matmul<f8_e4m3 from f8_e4m3>): c has no buffer, which a result of fp8 needs unless "
          "beta is zero and no factor is a parameter");
    CHECK(described(true));
}

TEST_CASE("scales, the bias and amax_d can be slots of a plan, and the factors its parameters")
{
    using op = blas::matmul<float8_e4m3, float8_e4m3>;
    constexpr std::size_t side = 16;
    plan_builder b("quantized");
    const auto x = b.input<float8_e4m3>(side * side, "x");
    const auto scale_x = b.input<float>(1, "scale_x");
    const auto added = b.input<bfloat16>(side * side, "added");
    const auto alpha = b.parameter<float>("alpha");
    const auto beta = b.parameter<float>("beta");
    std::vector<float8_e4m3> one(side * side);
    for (std::size_t i = 0; i < side; ++i)
        one[i + i * side] = float8_e4m3(1.0F);
    const auto w = b.constant<float8_e4m3>(one);
    const auto scale_w = b.constant<float>(std::vector<float>{2});
    const auto scale_y = b.constant<float>(std::vector<float>{0.5F});
    const auto bias = b.constant<bfloat16>(std::vector<bfloat16>(side, bfloat16(1.0F)));
    const auto y = b.output<float8_e4m3>(side * side, "y");
    const auto amax = b.output<float>(1, "amax");
    b.add(op{.a = w,
             .b = x,
             .d = y,
             .c = added,
             .bias = bias,
             .scale_a = scale_w,
             .scale_b = scale_x,
             .scale_d = scale_y,
             .amax_d = amax,
             .m = side,
             .n = side,
             .k = side,
             .trans_a = transpose::yes},
          bind(&op::alpha, alpha), bind(&op::beta, beta));
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    std::vector<float8_e4m3> given;
    std::vector<bfloat16> kept;
    for (std::size_t i = 0; i < side * side; ++i) {
        given.emplace_back(static_cast<float>(i % 13) - 6);
        kept.emplace_back(static_cast<float>(i % 7) - 3);
    }
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        if (!passed(loaded ? error_code() : loaded.error(), loaded ? "" : loaded.error().message()))
            return;
        struct run {
            float scale, alpha, beta;
        };
        for (const auto r : {run{1, 1, 0}, run{0.5F, -2, 1}, run{4, 0.25F, -3}}) {
            CAPTURE(r.scale);
            std::vector<float8_e4m3> got(side * side);
            std::vector<float> most(1);
            const std::vector<float> scale{r.scale};
            REQUIRE(test::await(f.io, loaded.value().async_run(from(given), from(scale), from(kept), to(got), to(most),
                                                               value(r.alpha), value(r.beta))));
            float wanted_most = 0;
            for (std::size_t i = 0; i < side * side; ++i) {
                const float wanted = r.alpha * 2 * r.scale * float(given[i]) + r.beta * float(kept[i]) + 1;
                wanted_most = std::max(wanted_most, std::abs(wanted));
                CHECK(float(got[i]) == float(float8_e4m3(0.5F * wanted)));
            }
            CHECK(most[0] == wanted_most);
        }
    });
}

TEST_SUITE_END();

} // namespace test_ops_blas_matmul_fp8
