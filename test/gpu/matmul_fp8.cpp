#include "products.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

// Large products of fp8 with cuBLASLt, compared with products of the same numbers in f32.
namespace {

using namespace coaccel;
using blas::transpose;
using test::await;
using test::device_fixture;
using test::gpu_fixture;
using test::random_numbers;
using test::run_listed;

constexpr std::size_t fp8_m = 256, fp8_n = 128, fp8_k = 512;

/// Whether the GPU has what a test needs. Says so if not.
bool has_capability(gpu_fixture& f, int needed)
{
    const int found = await(f.io, f.gpu.async_stats()).value().hardware.compute_capability;
    if (found < needed)
        MESSAGE("not run: the GPU has compute capability " << found << ", needed is " << needed);
    return found >= needed;
}

template <class T>
std::vector<float> in_f32(const std::vector<T>& numbers)
{
    return {numbers.begin(), numbers.end()};
}

std::vector<float> magnitudes(std::vector<float> numbers)
{
    for (float& x : numbers)
        x = std::abs(x);
    return numbers;
}

/// The greatest error of one rounding of x to D.
template <class D>
double rounding_error(double x)
{
    if constexpr (std::is_same_v<D, float8_e4m3>)
        return std::max(0x1p-4 * std::abs(x), 0x1p-10);
    else if constexpr (std::is_same_v<D, float8_e5m2>)
        return std::max(0x1p-3 * std::abs(x), 0x1p-17);
    else
        return test::unit_roundoff<D>() * std::abs(x);
}

/// The factors of transposed(A) * B, and their product in f32, whose columns have m elements.
template <class A, class B>
struct fp8_factors {
    std::vector<A> a = random_numbers<A>(fp8_k * fp8_m, 1);
    std::vector<B> b = random_numbers<B>(fp8_k * fp8_n, 2);
    std::vector<float> sums, sums_of_magnitudes;

    explicit fp8_factors(gpu_fixture& f)
        : sums(product(f, in_f32(a), in_f32(b))),
          sums_of_magnitudes(product(f, magnitudes(in_f32(a)), magnitudes(in_f32(b))))
    {}

    static std::vector<float> product(gpu_fixture& f, const std::vector<float>& a, const std::vector<float>& b)
    {
        const auto da = f.upload(a), db = f.upload(b), c = f.alloc<float>(fp8_m * fp8_n);
        run_listed(f, blas::gemm<float>{
                          .a = da, .b = db, .c = c, .m = fp8_m, .n = fp8_n, .k = fp8_k, .trans_a = transpose::yes});
        return f.download(c);
    }

    /// The error of a sum that is multiplied by `by`. Tensor cores add products of fp8 with fewer bits than f32 has.
    double error(std::size_t at, double by) const { return 0x1p-12 * std::abs(by) * sums_of_magnitudes[at]; }
};

/// Which products of fp8 are tested: the types of the factors and of the result.
template <class First, class Second, class Result>
struct fp8_types {
    using A = First;
    using B = Second;
    using D = Result;
    using op = blas::matmul<A, D, B>;
};

using e4m3 = float8_e4m3;
using e5m2 = float8_e5m2;

/// The same numbers and scales on a GPU and on the CPU.
template <class Types>
struct scaled_result {
    std::vector<typename Types::D> d;
    float amax = 0;
};

struct fp8_scales {
    static constexpr float a = 0.25F, b = 3, d = 8, alpha = 0.5F, beta = 0.5F;
    static constexpr double of_sums = double(alpha) * a * b;
};

template <class Types>
scaled_result<Types> run_scaled(device_fixture& f, const fp8_factors<typename Types::A, typename Types::B>& x,
                                const std::vector<bfloat16>& c)
{
    using D = typename Types::D;
    const auto a = f.upload(x.a);
    const auto b = f.upload(x.b);
    const auto d = f.upload(std::vector<D>(fp8_m * fp8_n, test::poison<D>()));
    const auto of_a = f.upload(std::vector<float>{fp8_scales::a}), of_b = f.upload(std::vector<float>{fp8_scales::b});
    const auto of_d = f.upload(std::vector<float>{fp8_scales::d});
    const auto amax = f.upload(std::vector<float>{test::poison<float>()});
    const auto dc = f.upload(c.empty() ? std::vector<bfloat16>(1) : c);
    typename Types::op op{.a = a,
                          .b = b,
                          .d = d,
                          .scale_a = of_a,
                          .scale_b = of_b,
                          .scale_d = of_d,
                          .amax_d = amax,
                          .m = fp8_m,
                          .n = fp8_n,
                          .k = fp8_k,
                          .alpha = fp8_scales::alpha,
                          .trans_a = transpose::yes};
    if (!c.empty()) {
        op.c = dc;
        op.beta = fp8_scales::beta;
    }
    run_listed(f, op);
    return {f.download(d), f.download(amax)[0]};
}

/// How many elements differ from the expected ones.
template <class Types>
std::size_t count_wrong(const scaled_result<Types>& got, const fp8_factors<typename Types::A, typename Types::B>& x,
                        const std::vector<bfloat16>& c)
{
    constexpr double by = fp8_scales::of_sums;
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < got.d.size(); ++p) {
        const double sum = by * x.sums[p] + (c.empty() ? 0 : fp8_scales::beta * test::number(c[p]));
        const double wanted = fp8_scales::d * sum;
        const double bound = 2 * fp8_scales::d * x.error(p, by) + rounding_error<typename Types::D>(wanted);
        wrong += !(std::abs(test::number(got.d[p]) - wanted) <= bound);
    }
    return wrong;
}

} // namespace

TEST_SUITE_BEGIN("gpu matmul of fp8");

TEST_CASE("a large product of fp8 agrees with that of the same numbers in f32")
{
    constexpr std::size_t m = 512, n = 256, k = 1024;
    gpu_fixture f;
    if (!has_capability(f, 89))
        return;
    const auto a = random_numbers<e4m3>(m * k, 1);
    const auto b = random_numbers<e4m3>(k * n, 2);
    const auto small_a = f.upload(a), small_b = f.upload(b);
    const auto wide_a = f.upload(in_f32(a)), wide_b = f.upload(in_f32(b));
    const auto one = f.upload(std::vector<float>{1}), two = f.upload(std::vector<float>{2});
    const auto c = f.alloc<float>(m * n), d = f.alloc<float>(m * n);
    run_listed(f, blas::matmul<e4m3, float>{.a = small_a,
                                            .b = small_b,
                                            .d = c,
                                            .scale_a = one,
                                            .scale_b = two,
                                            .m = m,
                                            .n = n,
                                            .k = k,
                                            .trans_a = transpose::yes});
    run_listed(f, blas::gemm<float>{
                      .a = wide_a, .b = wide_b, .c = d, .m = m, .n = n, .k = k, .alpha = 2, .trans_a = transpose::yes});
    CHECK(test::greatest_distance(f.download(c), f.download(d)) < 0.1);
}

TEST_CASE_TEMPLATE("a result of fp8 has a scale and a greatest magnitude, as on the CPU", Types,
                   fp8_types<e4m3, e4m3, e4m3>, fp8_types<e4m3, e5m2, e4m3>, fp8_types<e4m3, e5m2, e5m2>,
                   fp8_types<e5m2, e4m3, e4m3>, fp8_types<e5m2, e4m3, e5m2>)
{
    gpu_fixture f;
    if (!has_capability(f, 89))
        return;
    device_fixture cpu(test::pool_options());
    const fp8_factors<typename Types::A, typename Types::B> x(f);
    for (const auto& c : {std::vector<bfloat16>(), random_numbers<bfloat16>(fp8_m * fp8_n, 3, 4)}) {
        INFO("elements of c: ", c.size());
        const auto got = run_scaled<Types>(f, x, c);
        const auto on_cpu = run_scaled<Types>(cpu, x, c);
        CHECK(count_wrong(got, x, c) == 0);
        CHECK(count_wrong(on_cpu, x, c) == 0);
        double error = 0;
        for (std::size_t p = 0; p < x.sums.size(); ++p)
            error = std::max(error, x.error(p, fp8_scales::of_sums));
        CHECK(std::abs(got.amax - on_cpu.amax) <= error);
        CHECK(on_cpu.amax > 1);
    }
}

TEST_CASE_TEMPLATE("factors of different types, with a scale of one of them, a bias and an activation", Types,
                   fp8_types<e4m3, e4m3, float>, fp8_types<e4m3, e5m2, float>, fp8_types<e4m3, e5m2, half>,
                   fp8_types<e4m3, e5m2, bfloat16>, fp8_types<e5m2, e4m3, float>, fp8_types<e5m2, e4m3, half>,
                   fp8_types<e5m2, e4m3, bfloat16>)
{
    using D = typename Types::D;
    using bias_type = typename Types::op::bias_type;
    gpu_fixture f;
    if (!has_capability(f, 89))
        return;
    const fp8_factors<typename Types::A, typename Types::B> x(f);
    const auto bias = random_numbers<bias_type>(fp8_m, 3, 4);
    const auto a = f.upload(x.a);
    const auto b = f.upload(x.b);
    const auto dbias = f.upload(bias);
    const auto two = f.upload(std::vector<float>{2});
    const auto d = f.alloc<D>(fp8_m * fp8_n);
    run_listed(f, typename Types::op{.a = a,
                                     .b = b,
                                     .d = d,
                                     .bias = dbias,
                                     .scale_b = two,
                                     .m = fp8_m,
                                     .n = fp8_n,
                                     .k = fp8_k,
                                     .trans_a = transpose::yes,
                                     .activation = blas::activation::relu});
    const auto got = f.download(d);
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < got.size(); ++p) {
        const double wanted = std::max(2.0 * x.sums[p] + test::number(bias[p % fp8_m]), 0.0);
        wrong += !(std::abs(test::number(got[p]) - wanted) <= 2 * x.error(p, 2) + 2 * rounding_error<D>(wanted));
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("factors have a scale for each row and each column, in both orders", D, float, half, bfloat16)
{
    gpu_fixture f;
    if (!has_capability(f, 90))
        return;
    const fp8_factors<e4m3, e4m3> x(f);
    const auto of_rows = random_numbers<float>(fp8_m, 3), of_columns = random_numbers<float>(fp8_n, 4);
    const auto a = f.upload(x.a);
    const auto b = f.upload(x.b);
    const auto scales_a = f.upload(of_rows), scales_b = f.upload(of_columns);
    for (const auto order : {blas::order::column_major, blas::order::row_major}) {
        // Both factors have the elements of one sum side by side, and so the same places in both orders.
        const bool by_rows = order == blas::order::row_major;
        INFO("row-major: ", by_rows);
        const auto d = f.upload(std::vector<D>(fp8_m * fp8_n, test::poison<D>()));
        run_listed(f, blas::matmul<e4m3, D>{.a = a,
                                            .b = b,
                                            .d = d,
                                            .scale_a = scales_a,
                                            .scale_b = scales_b,
                                            .m = fp8_m,
                                            .n = fp8_n,
                                            .k = fp8_k,
                                            .trans_a = by_rows ? transpose::no : transpose::yes,
                                            .trans_b = by_rows ? transpose::yes : transpose::no,
                                            .order = order});
        const auto got = f.download(d);
        std::size_t wrong = 0;
        for (std::size_t j = 0; j < fp8_n; ++j)
            for (std::size_t i = 0; i < fp8_m; ++i) {
                const double by = double(of_rows[i]) * of_columns[j];
                const double wanted = by * x.sums[i + j * fp8_m];
                const double bound = 2 * x.error(i + j * fp8_m, by) + 2 * rounding_error<D>(wanted);
                wrong += !(std::abs(test::number(got[by_rows ? i * fp8_n + j : i + j * fp8_m]) - wanted) <= bound);
            }
        CHECK(wrong == 0);
    }
}

TEST_SUITE_END();
