#include "support/device_fixture.hpp"
#include "support/prim.hpp"
#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace test_ops_prim_reduce {

// Reductions, on any device.
namespace {

using namespace coaccel;
using prim::arg_reduction;
using prim::dimensions;
using prim::layout;
using prim::reduction;
using test::as_double;
using test::await;
using test::device_fixture;
using test::elements;
using test::run_listed;

constexpr reduction reductions[] = {reduction::sum, reduction::product, reduction::min, reduction::max};

using number_types = boost::mp11::mp_append<prim::floating_types, prim::integer_types>;

template <class Run>
void for_each_type(Run run)
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        test::for_each_type(number_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            run.template operator()<T>(f);
        });
    }
}

/// Elements whose products stay within the range of the type.
template <class T>
std::vector<T> factors(std::mt19937& random, std::size_t count)
{
    if constexpr (prim::integer<T>) {
        return test::random_bits<T>(random, count);
    } else {
        auto made = test::random_elements<T>(random, count, -2, 2);
        for (auto& x : made)
            if (as_double(x) != 0 && random() % 8 != 0)
                x = T(as_double(x) < 0 ? -1.0f : 1.0f);
        return made;
    }
}

/// In the order of the elements, in the type with the most digits.
template <class T>
bool is_reduction(reduction what, const std::vector<T>& all, T got)
{
    if constexpr (prim::integer<T>) {
        std::uint64_t sum = 0;
        std::uint64_t product = 1;
        T least = all[0];
        T most = all[0];
        for (const T x : all) {
            sum += static_cast<std::uint64_t>(x);
            product *= static_cast<std::uint64_t>(x);
            least = std::min(least, x);
            most = std::max(most, x);
        }
        switch (what) {
        case reduction::sum: return got == static_cast<T>(sum);
        case reduction::product: return got == static_cast<T>(product);
        case reduction::min: return got == least;
        case reduction::max: return got == most;
        }
        return false;
    } else {
        long double sum = 0;
        long double sizes = 0;
        long double product = 1;
        double least = as_double(all[0]);
        double most = least;
        for (const T x : all) {
            sum += as_double(x);
            sizes += std::abs(as_double(x));
            product *= as_double(x);
            least = std::min(least, as_double(x));
            most = std::max(most, as_double(x));
        }
        const auto close = [&](long double value, long double size) {
            // Sums of elements of 16 bits may be computed in f32.
            const double inexact = sizeof(T) == 2 ? 6e-8 : 2.3e-16;
            const double bound = test::epsilon<T>() * std::abs(static_cast<double>(value)) +
                                 as_double(std::numeric_limits<T>::denorm_min()) +
                                 inexact * static_cast<double>(size) * std::sqrt(double(all.size()) + 16);
            return test::close(as_double(got), static_cast<double>(value), bound);
        };
        switch (what) {
        case reduction::sum: return close(sum, sizes);
        case reduction::product: return close(product, std::abs(product) * 2);
        case reduction::min: return as_double(got) == least;
        case reduction::max: return as_double(got) == most;
        }
        return false;
    }
}

/// The elements of each result, by counting through all indices: result place -> places in x, in row-major order.
std::map<std::uint64_t, std::vector<std::uint64_t>> rows_of(const layout<2>& l)
{
    std::map<std::uint64_t, std::vector<std::uint64_t>> made;
    std::uint64_t count = 1;
    for (std::size_t d = 0; d < l.rank; ++d)
        count *= l.dims[d];
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t rest = i;
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        for (std::size_t d = l.rank; d-- > 0;) {
            const std::uint64_t index = rest % l.dims[d];
            rest /= l.dims[d];
            from += index * l.strides[0][d];
            to += index * l.strides[1][d];
        }
        made[to].push_back(from);
    }
    return made;
}

struct case_of_shape {
    layout<2> shape;
    std::uint64_t x;
    std::uint64_t y;
};

std::vector<case_of_shape> shapes()
{
    std::vector<case_of_shape> made{
        {layout<2>::vector(1).scalar(1), 1, 1},
        {layout<2>::vector(1000).scalar(1), 1000, 3},
        // No dimension is reduced.
        {layout<2>::vector(33), 33, 33},
        {layout<2>::matrix(7, 300).column(1), 2100, 7},
        {layout<2>::matrix(300, 7).row(1), 2100, 9},
        {layout<2>::matrix(300, 7).scalar(1), 2100, 1},
        {layout<2>::matrix(5, 40).operand(0, {50, 1}).operand(1, {2, 0}), 250, 10},
        // x repeats its elements.
        {layout<2>::matrix(3, 5).row(0).column(1), 5, 3},
        // Two separate dimensions of three are reduced.
        {layout<2>::packed({4, 6, 5}).operand(1, {0, 1, 0}), 120, 6},
        {layout<2>::packed({4, 6, 5}).operand(1, {5, 0, 1}), 120, 20},
        // The elements of a result in another order than in memory.
        {layout<2>::packed({6, 4, 5}).operand(0, {1, 6, 24}).operand(1, {0, 0, 3}), 120, 15},
        {layout<2>::packed({2, 3, 2, 3, 2, 3}).operand(1, {6, 2, 1, 0, 0, 0}), 216, 12},
        {layout<2>::packed({2, 3, 2, 3, 2, 3}).operand(1, {0, 6, 0, 2, 0, 0}), 216, 18},
    };
    return made;
}

} // namespace

TEST_SUITE_BEGIN("prim reductions");

TEST_CASE("reduce, along any dimensions and between other elements")
{
    for_each_type([]<class T>(device_fixture& f) {
        std::mt19937 random(31);
        for (const auto& [shape, x_size, y_size] : shapes()) {
            const auto x = factors<T>(random, x_size);
            const auto from = f.upload(x);
            for (const auto what : reductions) {
                const auto to = f.upload(test::poisoned<T>(y_size));
                const auto ec = run_listed(f, prim::reduce<T>{.x = from, .y = to, .what = what, .shape = shape});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto y = f.download(to);
                const auto rows = rows_of(shape);
                std::size_t wrong = 0;
                for (std::uint64_t i = 0; i < y_size; ++i) {
                    const auto row = rows.find(i);
                    if (row == rows.end()) {
                        wrong += !test::same_bytes(y[i], test::poisoned<T>(1)[0]);
                        continue;
                    }
                    std::vector<T> all;
                    for (const std::uint64_t place : row->second)
                        all.push_back(x[place]);
                    wrong += !is_reduction(what, all, y[i]);
                }
                // A copy: a binding cannot be captured by the lambda in the macro.
                const std::uint64_t size = x_size;
                CHECK_MESSAGE(wrong == 0, "reduction " << int(what) << " of " << size << " elements");
            }
        }
    });
}

TEST_CASE("arg_reduce gives the first index of the least or greatest element")
{
    for_each_type([]<class T>(device_fixture& f) {
        std::mt19937 random(32);
        for (const auto& [shape, x_size, y_size] : shapes()) {
            // Few different values.
            std::vector<T> x(x_size);
            for (auto& v : x)
                v = static_cast<T>(static_cast<float>(random() % 6));
            const auto from = f.upload(x);
            for (const auto what : {arg_reduction::min, arg_reduction::max}) {
                const auto to = f.upload(test::poisoned<std::uint64_t>(y_size));
                const auto ec = run_listed(f, prim::arg_reduce<T>{.x = from, .y = to, .what = what, .shape = shape});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto y = f.download(to);
                std::size_t wrong = 0;
                for (const auto& [place, row] : rows_of(shape)) {
                    std::uint64_t best = 0;
                    for (std::uint64_t i = 1; i < row.size(); ++i) {
                        const double a = as_double(x[row[i]]);
                        const double b = as_double(x[row[best]]);
                        if (what == arg_reduction::min ? a < b : a > b)
                            best = i;
                    }
                    wrong += y[place] != best;
                }
                CHECK(wrong == 0);
            }
        }
    });
}

TEST_CASE("many elements are reduced in the same way each time")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(33);
        constexpr std::uint64_t n = 300001;
        const auto x = test::random_elements<float>(random, n, -1, 1);
        const auto from = f.upload(x);
        long double sum = 0;
        for (const float v : x)
            sum += v;
        std::vector<float> results;
        for (int i = 0; i < 3; ++i) {
            const auto to = f.upload(test::poisoned<float>(1));
            REQUIRE_FALSE(run_listed(f, prim::reduce<float>{.x = from, .y = to}));
            results.push_back(f.download(to)[0]);
        }
        CHECK(test::close(results[0], static_cast<double>(sum), 1e-4));
        CHECK(results[0] == results[1]);
        CHECK(results[0] == results[2]);
        // From an address that is not aligned, and all elements but the first.
        const auto to = f.upload(test::poisoned<float>(1));
        REQUIRE_FALSE(run_listed(f, prim::reduce<float>{.x = from.ref().subspan(1, n - 1), .y = to}));
        CHECK(test::close(f.download(to)[0], static_cast<double>(sum - x[0]), 1e-4));
        auto y = x;
        y[n - 2] = 7;
        const auto with_peak = f.upload(y);
        const auto at = f.upload(test::poisoned<std::uint64_t>(1));
        REQUIRE_FALSE(run_listed(f, prim::arg_reduce<float>{.x = with_peak, .y = at}));
        CHECK(f.download(at)[0] == n - 2);
    }
}

TEST_CASE("NaN is the least and the greatest element")
{
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::vector<float> x(100, 1.0f);
        x[40] = x[70] = nan;
        x[3] = std::numeric_limits<float>::infinity();
        const auto from = f.upload(x);
        const auto y = f.upload(std::vector<float>{0});
        const auto i = f.upload(std::vector<std::uint64_t>{0});
        for (const auto what : {reduction::min, reduction::max, reduction::sum}) {
            REQUIRE_FALSE(run_listed(f, prim::reduce<float>{.x = from, .y = y, .what = what}));
            CHECK(std::isnan(f.download(y)[0]));
        }
        for (const auto what : {arg_reduction::min, arg_reduction::max}) {
            REQUIRE_FALSE(run_listed(f, prim::arg_reduce<float>{.x = from, .y = i, .what = what}));
            CHECK(f.download(i)[0] == 40);
        }
    }
}

TEST_CASE("segmented_reduce, with empty and with long segments")
{
    for_each_type([]<class T>(device_fixture& f) {
        std::mt19937 random(34);
        for (const std::uint64_t columns : {1, 3}) {
            const std::vector<std::uint64_t> offsets{0, 1, 1, 8, 700, 640, 900, 5000};
            constexpr std::uint64_t rows = 910;
            const std::uint64_t segments = offsets.size() - 1;
            const auto x = factors<T>(random, rows * columns);
            const auto from = f.upload(x);
            const auto at = f.upload(offsets);
            for (const auto what : reductions) {
                const auto to = f.upload(test::poisoned<T>(segments * columns + 1));
                const auto ec = run_listed(f, prim::segmented_reduce<T>{.x = from,
                                                                        .offsets = at,
                                                                        .y = to,
                                                                        .rows = rows,
                                                                        .segments = segments,
                                                                        .columns = columns,
                                                                        .what = what});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto y = f.download(to);
                std::size_t wrong = 0;
                for (std::uint64_t s = 0; s < segments; ++s)
                    for (std::uint64_t c = 0; c < columns; ++c) {
                        std::vector<T> all;
                        for (std::uint64_t r = offsets[s]; r < std::min(offsets[s + 1], rows); ++r)
                            all.push_back(x[r * columns + c]);
                        const T got = y[s * columns + c];
                        if (!all.empty()) {
                            wrong += !is_reduction(what, all, got);
                            continue;
                        }
                        using limits = std::numeric_limits<T>;
                        const bool real = prim::floating<T>;
                        const double least = real ? -HUGE_VAL : as_double(limits::lowest());
                        const double most = real ? HUGE_VAL : as_double(limits::max());
                        const double empty[] = {0, 1, most, least};
                        wrong += as_double(got) != empty[int(what)];
                    }
                wrong += !test::same_bytes(y.back(), test::poisoned<T>(1)[0]);
                CHECK(wrong == 0);
            }
        }
    });
}

TEST_CASE("a reduction is part of a plan")
{
    constexpr std::uint64_t n = 40000;
    plan_builder b("sums");
    const auto x = b.input<float>(n, "x");
    const auto sum = b.output<float>(1, "sum");
    const auto running = b.output<float>(n, "running");
    b.add(prim::reduce<float>{.x = x, .y = sum});
    b.add(prim::scan<float>{.x = x, .y = running, .n = n});
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        auto loaded = await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        for (const float v : {1.0f, 0.5f}) {
            const std::vector<float> values(n, v);
            auto total = test::poisoned<float>(1);
            auto sums = test::poisoned<float>(n);
            REQUIRE(await(f.io, loaded.value().async_run(from(values), to(total), to(sums))));
            CHECK(total[0] == v * n);
            CHECK(sums[n - 1] == v * n);
            CHECK(sums[9999] == v * 10000);
        }
    }
}

TEST_CASE("refusals of reductions")
{
    using op = prim::reduce<float>;
    const auto x = elements(12, 0);
    const auto y = elements(4, 1);
    const auto i = elements<std::uint64_t>(4, 1);
    const auto m = layout<2>::matrix(3, 4);
    using seg = prim::segmented_reduce<float>;
    const struct {
        error_code got;
        errc code;
        std::string message;
    } rows[] = {
        {op{.x = x, .y = y, .what = static_cast<reduction>(4)}.check(), errc::invalid_argument,
         "prim.reduce: what is 4, which is not a prim::reduction"},
        {op{.x = {}, .y = y}.check(), errc::invalid_argument, "prim.reduce: x has 0 elements"},
        {op{.x = x, .y = {}}.check(), errc::out_of_bounds, "prim.reduce: y has 0 elements, needs 1"},
        {op{.x = x, .y = y, .shape = m}.check(), errc::out_of_bounds, "prim.reduce: y has 4 elements, needs 12"},
        {op{.x = x, .y = y, .shape = layout<2>::matrix(3, 5).row(1)}.check(), errc::out_of_bounds,
         "prim.reduce: x has 12 elements, needs 15"},
        {op{.x = x, .y = y, .shape = layout<2>::matrix(3, 0).row(1)}.check(), errc::invalid_argument,
         "prim.reduce: dimension 1 of shape is 0"},
        {op{.x = x, .y = y, .shape = layout<2>::packed({1, 1, 1, 1, 1, 1, 1})}.check(), errc::invalid_argument,
         "prim.reduce: shape has 7 dimensions, at most 6 are possible"},
        {op{.x = x, .y = y, .shape = layout<2>::packed({2, 2, 3}).operand(1, {1, 1, 0})}.check(),
         errc::invalid_argument, "prim.reduce: the strides of y give two elements the same place"},
        {prim::arg_reduce<float>{.x = x, .y = i, .what = static_cast<arg_reduction>(2)}.check(), errc::invalid_argument,
         "prim.arg_reduce: what is 2, which is not a prim::arg_reduction"},
        {seg{.x = x, .offsets = i, .y = y, .segments = 3}.check(), errc::invalid_argument,
         "prim.segmented_reduce: rows is 0"},
        {seg{.x = x, .offsets = i, .y = y, .rows = 12}.check(), errc::invalid_argument,
         "prim.segmented_reduce: segments is 0"},
        {seg{.x = x, .offsets = i, .y = y, .rows = 12, .segments = 3, .columns = 0}.check(), errc::invalid_argument,
         "prim.segmented_reduce: columns is 0"},
        {seg{.x = x, .offsets = i, .y = y, .rows = 12, .segments = 4}.check(), errc::out_of_bounds,
         "prim.segmented_reduce: offsets has 4 elements, needs 5"},
        {seg{.x = x, .offsets = i, .y = y, .rows = 6, .segments = 3, .columns = 2}.check(), errc::out_of_bounds,
         "prim.segmented_reduce: y has 4 elements, needs 6"},
        {seg{.x = x, .offsets = i, .y = y, .rows = 13, .segments = 3}.check(), errc::out_of_bounds,
         "prim.segmented_reduce: x has 12 elements, needs 13"},
    };
    for (const auto& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
    // The result is not part of what is reduced.
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto all = f.upload(std::vector<float>(12));
        CHECK(run_listed(f, op{.x = all, .y = all.ref().subspan(3, 1)}) == errc::overlap);
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_reduce
