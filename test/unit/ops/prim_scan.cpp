#include "support/device_fixture.hpp"
#include "support/prim.hpp"
#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace test_ops_prim_scan {

// Scans, on any device.
namespace {

using namespace coaccel;
using prim::reduction;
using prim::scan_range;
using test::as_double;
using test::device_fixture;
using test::elements;
using test::run_listed;

using number_types = boost::mp11::mp_append<prim::floating_types, prim::integer_types>;

/// Each result by itself, from all elements before it.
template <class T>
bool is_scan(reduction what, const std::vector<T>& before, T got)
{
    long double sum = 0;
    long double sizes = 0;
    long double product = 1;
    std::uint64_t integer_sum = 0;
    std::uint64_t integer_product = 1;
    double least = HUGE_VAL;
    double most = -HUGE_VAL;
    for (const T x : before) {
        sum += as_double(x);
        sizes += std::abs(as_double(x));
        product *= as_double(x);
        least = std::min(least, as_double(x));
        most = std::max(most, as_double(x));
        if constexpr (prim::integer<T>) {
            integer_sum += static_cast<std::uint64_t>(x);
            integer_product *= static_cast<std::uint64_t>(x);
        }
    }
    if constexpr (prim::integer<T>) {
        if (before.empty() && what == reduction::min)
            return got == std::numeric_limits<T>::max();
        if (before.empty() && what == reduction::max)
            return got == std::numeric_limits<T>::min();
        if (what == reduction::sum)
            return got == static_cast<T>(integer_sum);
        if (what == reduction::product)
            return got == static_cast<T>(integer_product);
    } else {
        const double inexact = sizeof(T) == 2 ? 6e-8 : 2.3e-16;
        const double terms = std::sqrt(double(before.size()) + 16);
        if (what == reduction::sum)
            return test::close(as_double(got), static_cast<double>(sum),
                               test::epsilon<T>() * std::abs(double(sum)) + inexact * double(sizes) * terms);
        if (what == reduction::product)
            return test::close(as_double(got), static_cast<double>(product),
                               std::abs(double(product)) * (test::epsilon<T>() + inexact * terms) +
                                   as_double(std::numeric_limits<T>::denorm_min()));
    }
    return as_double(got) == (what == reduction::min ? least : most);
}

struct shape {
    std::uint64_t outer, n, inner;
};

} // namespace

TEST_SUITE_BEGIN("prim scans");

TEST_CASE("scan, along every axis, with and without the element itself, also in place")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        test::for_each_type(number_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            std::mt19937 random(41);
            for (const auto& [outer, n, inner] : {shape{1, 1, 1}, shape{3, 5, 1}, shape{2, 300, 1}, shape{2, 40, 3}})
                for (const auto what : {reduction::sum, reduction::product, reduction::min, reduction::max})
                    for (const auto range : {scan_range::inclusive, scan_range::exclusive}) {
                        auto x = test::random_elements<T>(random, outer * n * inner, prim::floating<T> ? -2 : 0, 3);
                        // Products stay within the range.
                        if (what == reduction::product)
                            for (auto& v : x)
                                v = random() % 8 == 0 ? v : T(1);
                        const auto from = f.upload(x);
                        const auto to = f.upload(test::poisoned<T>(x.size() + 1));
                        prim::scan<T> op{
                            .x = from, .y = to, .what = what, .range = range, .n = n, .outer = outer, .inner = inner};
                        auto ec = run_listed(f, op);
                        REQUIRE_MESSAGE(!ec, ec.message());
                        const auto y = f.download(to);
                        op.y = from;
                        ec = run_listed(f, op);
                        REQUIRE_MESSAGE(!ec, ec.message());
                        const auto replaced = f.download(from);
                        std::size_t wrong = 0;
                        for (std::uint64_t o = 0; o < outer; ++o)
                            for (std::uint64_t i = 0; i < inner; ++i) {
                                std::vector<T> before;
                                for (std::uint64_t k = 0; k < n; ++k) {
                                    const std::uint64_t at = (o * n + k) * inner + i;
                                    if (range == scan_range::inclusive)
                                        before.push_back(x[at]);
                                    wrong += !is_scan(what, before, y[at]);
                                    wrong += !test::same_bytes(replaced[at], y[at]);
                                    if (range == scan_range::exclusive)
                                        before.push_back(x[at]);
                                }
                            }
                        wrong += !test::same_bytes(y.back(), test::poisoned<T>(1)[0]);
                        // A copy: a binding cannot be captured by the lambda in the macro.
                        const std::uint64_t size = n;
                        CHECK_MESSAGE(wrong == 0, "reduction " << int(what) << " of " << size);
                    }
        });
    }
}

TEST_CASE("a scan of many elements")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        constexpr std::uint64_t n = 200003;
        std::mt19937 random(42);
        std::vector<std::uint32_t> x(n);
        std::ranges::generate(x, random);
        const auto from = f.upload(x);
        const auto to = f.upload(test::poisoned<std::uint32_t>(n));
        for (const auto range : {scan_range::inclusive, scan_range::exclusive}) {
            REQUIRE_FALSE(run_listed(f, prim::scan<std::uint32_t>{.x = from, .y = to, .range = range, .n = n}));
            const auto y = f.download(to);
            std::size_t wrong = 0;
            std::uint32_t sum = 0;
            for (std::uint64_t i = 0; i < n; ++i) {
                wrong += y[i] != sum + (range == scan_range::inclusive ? x[i] : 0);
                sum += x[i];
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("refusals of scans")
{
    using op = prim::scan<float>;
    const auto x = elements(12, 0);
    const auto y = elements(12, 1);
    const struct {
        error_code got;
        errc code;
        std::string message;
    } rows[] = {
        {op{.x = x, .y = y}.check(), errc::invalid_argument, "prim.scan: n is 0"},
        {op{.x = x, .y = y, .n = 3, .outer = 0}.check(), errc::invalid_argument, "prim.scan: outer is 0"},
        {op{.x = x, .y = y, .n = 3, .inner = 0}.check(), errc::invalid_argument, "prim.scan: inner is 0"},
        {op{.x = x, .y = y, .n = 13}.check(), errc::out_of_bounds, "prim.scan: x has 12 elements, needs 13"},
        {op{.x = x, .y = y, .what = static_cast<reduction>(9), .n = 3}.check(), errc::invalid_argument,
         "prim.scan: what is 9, which is not a prim::reduction"},
        {op{.x = x, .y = y, .range = static_cast<scan_range>(2), .n = 3}.check(), errc::invalid_argument,
         "prim.scan: range is 2, which is not a prim::scan_range"},
        {op{.x = x, .y = elements(11, 0, 1), .n = 4}.check(), errc::overlap,
         "prim.scan: y and x overlap without being the same"},
    };
    for (const auto& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_scan
