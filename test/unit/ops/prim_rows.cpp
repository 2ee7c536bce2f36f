#include "support/device_fixture.hpp"
#include "support/prim.hpp"
#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace test_ops_prim_rows {

// Ops on rows, on any device.
namespace {

using namespace coaccel;
using prim::activation;
using test::as_double;
using test::device_fixture;
using test::elements;
using test::run_listed;

/// By other formulas than those of the library.
double activated(activation a, double x)
{
    switch (a) {
    case activation::none: return x;
    case activation::relu: return (x + std::abs(x)) / 2;
    case activation::gelu: return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case activation::silu: return x * 0.5 * (1 + std::tanh(x / 2));
    case activation::tanh: return 1 - 2 / (std::exp(2 * x) + 1);
    case activation::sigmoid: return 0.5 * (1 + std::tanh(x / 2));
    }
    return 0;
}

constexpr activation activations[] = {activation::none, activation::relu, activation::gelu,
                                      activation::silu, activation::tanh, activation::sigmoid};

struct matrix_size {
    std::uint64_t rows, columns;
};

constexpr matrix_size matrices[] = {{1, 1}, {3, 7}, {5, 1000}, {301, 2}};

template <class Run>
void for_each_type(Run run)
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        test::for_each_type(prim::floating_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            run.template operator()<T>(f);
        });
    }
}

} // namespace

TEST_SUITE_BEGIN("prim rows");

TEST_CASE("bias_activation adds one bias to each column, also in place and between other elements")
{
    for_each_type([]<class T>(device_fixture& f) {
        std::mt19937 random(21);
        for (const auto& [rows, columns] : matrices)
            for (const auto what : activations) {
                const std::uint64_t ldx = columns + 3;
                const std::uint64_t ldy = columns + 2;
                const auto x = test::random_elements<T>(random, rows * ldx, -4, 4);
                const auto bias = test::random_elements<T>(random, columns, -1, 1);
                const auto from = f.upload(x);
                const auto b = f.upload(bias);
                const auto to = f.upload(test::poisoned<T>(rows * ldy));
                auto ec = run_listed(f, prim::bias_activation<T>{.x = from,
                                                                 .bias = b,
                                                                 .y = to,
                                                                 .rows = rows,
                                                                 .columns = columns,
                                                                 .what = what,
                                                                 .ldx = ldx,
                                                                 .ldy = ldy});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto y = f.download(to);
                ec = run_listed(f, prim::bias_activation<T>{.x = from,
                                                            .bias = b,
                                                            .y = from,
                                                            .rows = rows,
                                                            .columns = columns,
                                                            .what = what,
                                                            .ldx = ldx,
                                                            .ldy = ldx});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto in_place = f.download(from);
                const auto poison = test::poisoned<T>(1)[0];
                std::size_t wrong = 0;
                for (std::uint64_t r = 0; r < rows; ++r) {
                    for (std::uint64_t c = 0; c < columns; ++c) {
                        const double sum = as_double(x[r * ldx + c]) + as_double(bias[c]);
                        const double bound = test::epsilon<T>() * 8 * (std::abs(sum) + 1);
                        wrong += !test::close(as_double(y[r * ldy + c]), activated(what, sum), bound);
                        wrong += !test::same_bytes(in_place[r * ldx + c], y[r * ldy + c]);
                    }
                    for (std::uint64_t c = columns; c < ldy; ++c)
                        wrong += !test::same_bytes(y[r * ldy + c], poison);
                    for (std::uint64_t c = columns; c < ldx; ++c)
                        wrong += !test::same_bytes(in_place[r * ldx + c], x[r * ldx + c]);
                }
                CHECK(wrong == 0);
            }
    });
}

TEST_CASE("softmax and its logarithm, along every axis and for large numbers")
{
    for_each_type([]<class T>(device_fixture& f) {
        std::mt19937 random(22);
        struct shape {
            std::uint64_t outer, n, inner;
        };
        for (const auto& [outer, n, inner] : {shape{1, 1, 1}, shape{3, 5, 1}, shape{2, 1000, 1}, shape{2, 17, 3}})
            for (const double offset : {0.0, 10000.0}) {
                const auto x = test::random_elements<T>(random, outer * n * inner, offset - 5, offset + 5);
                const auto from = f.upload(x);
                const auto to = f.upload(test::poisoned<T>(x.size()));
                const prim::softmax<T> op{.x = from, .y = to, .n = n, .outer = outer, .inner = inner};
                REQUIRE_FALSE(run_listed(f, op));
                const auto y = f.download(to);
                REQUIRE_FALSE(
                    run_listed(f, prim::log_softmax<T>{.x = from, .y = to, .n = n, .outer = outer, .inner = inner}));
                const auto z = f.download(to);
                auto in_place = op;
                in_place.y = from;
                REQUIRE_FALSE(run_listed(f, in_place));
                const auto replaced = f.download(from);
                std::size_t wrong = 0;
                for (std::uint64_t o = 0; o < outer; ++o)
                    for (std::uint64_t i = 0; i < inner; ++i) {
                        const auto at = [first = o * n * inner + i, step = inner](std::uint64_t k) {
                            return first + k * step;
                        };
                        long double sum = 0;
                        for (std::uint64_t k = 0; k < n; ++k)
                            sum += std::exp(static_cast<long double>(as_double(x[at(k)])));
                        for (std::uint64_t k = 0; k < n; ++k) {
                            const auto v = static_cast<long double>(as_double(x[at(k)]));
                            const auto share = static_cast<double>(std::exp(v) / sum);
                            const auto log = static_cast<double>(v - std::log(sum));
                            wrong += !test::close(as_double(y[at(k)]), share,
                                                  test::epsilon<T>() * 16 * share +
                                                      as_double(std::numeric_limits<T>::denorm_min()));
                            wrong +=
                                !test::close(as_double(z[at(k)]), log, test::epsilon<T>() * 16 * (1 + std::abs(log)));
                            wrong += !test::same_bytes(replaced[at(k)], y[at(k)]);
                        }
                    }
                CHECK(wrong == 0);
            }
    });
}

TEST_CASE("a softmax of special rows")
{
    constexpr float inf = std::numeric_limits<float>::infinity();
    for_each_type([]<class T>(device_fixture& f) {
        const auto x = f.upload(std::vector<T>{T(-inf), T(0.0f), T(-inf), T(-inf), T(inf), T(1.0f)});
        REQUIRE_FALSE(run_listed(f, prim::softmax<T>{.x = x, .y = x, .n = 2, .outer = 3}));
        const auto y = f.download(x);
        CHECK(as_double(y[0]) == 0);
        CHECK(as_double(y[1]) == 1);
        CHECK(test::is_nan(y[2]));
        CHECK(test::is_nan(y[4]));
    });
}

TEST_CASE("layer_norm and rms_norm, also of rows far from zero")
{
    for_each_type([]<class T>(device_fixture& f) {
        std::mt19937 random(23);
        for (const auto& [rows, columns] : matrices)
            for (const double offset : {0.0, 100.0}) {
                const auto x = test::random_elements<T>(random, rows * columns, offset - 4, offset + 4);
                const auto scale = test::random_elements<T>(random, columns, 0.5, 2);
                const auto shift = test::random_elements<T>(random, columns, -1, 1);
                const auto from = f.upload(x);
                const auto s = f.upload(scale);
                const auto t = f.upload(shift);
                const auto to = f.upload(test::poisoned<T>(x.size()));
                auto ec = run_listed(
                    f,
                    prim::layer_norm<T>{
                        .x = from, .scale = s, .shift = t, .y = to, .rows = rows, .columns = columns, .epsilon = 0.01});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto y = f.download(to);
                ec = run_listed(f,
                                prim::rms_norm<T>{
                                    .x = from, .scale = s, .y = to, .rows = rows, .columns = columns, .epsilon = 0.01});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto z = f.download(to);
                std::size_t wrong = 0;
                for (std::uint64_t r = 0; r < rows; ++r) {
                    long double sum = 0;
                    long double squares = 0;
                    for (std::uint64_t k = 0; k < columns; ++k) {
                        const auto v = static_cast<long double>(as_double(x[r * columns + k]));
                        sum += v;
                        squares += v * v;
                    }
                    const long double mean = sum / columns;
                    const long double variance = squares / columns - mean * mean;
                    for (std::uint64_t k = 0; k < columns; ++k) {
                        const auto v = static_cast<long double>(as_double(x[r * columns + k]));
                        const double normal =
                            static_cast<double>((v - mean) / std::sqrt(variance + 0.01L)) * as_double(scale[k]) +
                            as_double(shift[k]);
                        const double ratio =
                            static_cast<double>(v / std::sqrt(squares / columns + 0.01L)) * as_double(scale[k]);
                        // With sums in f32, the mean has the error of numbers as large as the offset.
                        const double bound = test::epsilon<T>() * 8 * (1 + std::abs(normal)) +
                                             (sizeof(T) == 2 ? 1e-5 * offset : 0) + 1e-12;
                        wrong += !test::close(as_double(y[r * columns + k]), normal, bound);
                        wrong += !test::close(as_double(z[r * columns + k]), ratio,
                                              test::epsilon<T>() * 8 * (1 + std::abs(ratio)));
                    }
                }
                CHECK(wrong == 0);
            }
    });
}

TEST_CASE("refusals of ops on rows")
{
    using bias = prim::bias_activation<float>;
    const auto x = elements(12, 0);
    const auto y = elements(12, 1);
    const auto v = elements(4, 2);
    const struct {
        error_code got;
        errc code;
        std::string message;
    } rows[] = {
        {bias{.x = x, .bias = v, .y = y, .columns = 4}.check(), errc::invalid_argument,
         "prim.bias_activation: rows is 0"},
        {bias{.x = x, .bias = v, .y = y, .rows = 3}.check(), errc::invalid_argument,
         "prim.bias_activation: columns is 0"},
        {bias{.x = x, .bias = v, .y = y, .rows = 3, .columns = 4, .what = static_cast<activation>(6)}.check(),
         errc::invalid_argument, "prim.bias_activation: what is 6, which is not a prim::activation"},
        {bias{.x = x, .bias = v, .y = y, .rows = 3, .columns = 4, .ldx = 3}.check(), errc::leading_dimension,
         "prim.bias_activation: ldx is 3, a row has 4 elements"},
        {bias{.x = x, .bias = v, .y = y, .rows = 3, .columns = 4, .ldy = 5}.check(), errc::out_of_bounds,
         "prim.bias_activation: y has 12 elements, needs 14"},
        {bias{.x = x, .bias = v.first(3), .y = y, .rows = 3, .columns = 4}.check(), errc::out_of_bounds,
         "prim.bias_activation: bias has 3 elements, needs 4"},
        {prim::softmax<float>{.x = x, .y = y}.check(), errc::invalid_argument, "prim.softmax: n is 0"},
        {prim::softmax<float>{.x = x, .y = y, .n = 4, .outer = 0}.check(), errc::invalid_argument,
         "prim.softmax: outer is 0"},
        {prim::log_softmax<float>{.x = x, .y = y, .n = 4, .inner = 0}.check(), errc::invalid_argument,
         "prim.log_softmax: inner is 0"},
        {prim::softmax<float>{.x = x, .y = y, .n = 4, .outer = 4}.check(), errc::out_of_bounds,
         "prim.softmax: x has 12 elements, needs 16"},
        {prim::layer_norm<float>{.x = x, .scale = v, .shift = v, .y = y, .rows = 3, .columns = 4, .epsilon = -1}
             .check(),
         errc::invalid_argument, "prim.layer_norm: epsilon is negative or not a finite number"},
        {prim::rms_norm<float>{.x = x, .scale = v, .y = y, .rows = 3, .columns = 5}.check(), errc::out_of_bounds,
         "prim.rms_norm: x has 12 elements, needs 15"},
    };
    for (const auto& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_rows
