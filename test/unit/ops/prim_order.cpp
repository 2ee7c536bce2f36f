#include "support/device_fixture.hpp"
#include "support/prim.hpp"
#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace test_ops_prim_order {

// Sorting and selecting, on any device.
namespace {

using namespace coaccel;
using prim::sort_order;
using test::as_double;
using test::device_fixture;
using test::elements;
using test::run_listed;

using number_types = boost::mp11::mp_append<prim::floating_types, prim::integer_types>;

/// By comparing numbers, not their bits.
template <class T>
bool comes_before(sort_order order, const T& a, const T& b)
{
    if constexpr (prim::integer<T>) {
        return order == sort_order::ascending ? a < b : a > b;
    } else {
        const auto less = [](const T& x, const T& y) {
            return test::is_nan(y) ? !test::is_nan(x) : as_double(x) < as_double(y);
        };
        return order == sort_order::ascending ? less(a, b) : less(b, a);
    }
}

/// Few different values, with special ones.
template <class T>
std::vector<T> repeated(std::mt19937& random, std::size_t count)
{
    std::vector<T> made(count);
    for (auto& x : made) {
        x = static_cast<T>(static_cast<float>(random() % 50));
        if constexpr (prim::floating<T>) {
            const T special[] = {std::numeric_limits<T>::infinity(),
                                 -std::numeric_limits<T>::infinity(),
                                 std::numeric_limits<T>::quiet_NaN(),
                                 T(-0.0f),
                                 T(0.0f),
                                 T(-3.0f)};
            if (random() % 4 == 0)
                x = special[random() % std::size(special)];
        }
    }
    return made;
}

/// The indices of the sorted elements of a row.
template <class T>
std::vector<std::uint64_t> sorted_indices(const T* x, std::uint64_t n, sort_order order)
{
    std::vector<std::uint64_t> made(n);
    std::iota(made.begin(), made.end(), 0);
    std::stable_sort(made.begin(), made.end(),
                     [&](std::uint64_t a, std::uint64_t b) { return comes_before(order, x[a], x[b]); });
    return made;
}

template <class Run>
void for_each_type_and_order(Run run)
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        test::for_each_type(number_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            std::mt19937 random(71);
            for (const auto order : {sort_order::ascending, sort_order::descending})
                run.template operator()<T>(f, random, order);
        });
    }
}

struct rows_and_columns {
    std::uint64_t outer, n;
};

constexpr rows_and_columns matrices[] = {{1, 1}, {3, 2}, {5, 33}, {2, 700}, {1, 10000}};

// Several rows in several slices, for all types, and long ones in which a slice has several tiles.
constexpr rows_and_columns sliced_matrices[] = {{3, 9001}, {2, 33333}};

} // namespace

TEST_SUITE_BEGIN("prim orders");

TEST_CASE("top_k gives the first elements of each row with their indices")
{
    for_each_type_and_order([]<class T>(device_fixture& f, std::mt19937& random, sort_order order) {
        for (const auto& [outer, n] : matrices)
            for (const std::uint64_t k : {std::uint64_t(1), std::min<std::uint64_t>(n, 20), n}) {
                for (const auto& x : {test::random_bits<T>(random, outer * n), repeated<T>(random, outer * n)}) {
                    const auto from = f.upload(x);
                    const auto to = f.upload(test::poisoned<T>(outer * k + 1));
                    const auto at = f.upload(test::poisoned<std::uint64_t>(outer * k + 1));
                    const auto ec = run_listed(
                        f, prim::top_k<T>{
                               .x = from, .values = to, .indices = at, .n = n, .k = k, .outer = outer, .order = order});
                    REQUIRE_MESSAGE(!ec, ec.message());
                    const auto values = f.download(to);
                    const auto indices = f.download(at);
                    std::size_t wrong = !test::same_bytes(values.back(), test::poisoned<T>(1)[0]);
                    wrong += indices.back() != test::poisoned<std::uint64_t>(1)[0];
                    for (std::uint64_t row = 0; row < outer; ++row) {
                        const auto expected = sorted_indices(x.data() + row * n, n, order);
                        for (std::uint64_t i = 0; i < k; ++i) {
                            wrong += indices[row * k + i] != expected[i];
                            wrong += !test::same_bytes(values[row * k + i], x[row * n + expected[i]]);
                        }
                    }
                    CHECK_MESSAGE(wrong == 0, k << " of each row of " << x.size() << " elements");
                }
            }
    });
}

TEST_CASE("sort and sort_pairs order each row and keep the order of equal keys")
{
    for_each_type_and_order([]<class T>(device_fixture& f, std::mt19937& random, sort_order order) {
        auto all = std::vector(std::begin(matrices), std::end(matrices));
        all.insert(all.end(), std::begin(sliced_matrices), std::end(sliced_matrices));
        for (const auto& [outer, n] : all)
            for (const auto& x : {test::random_bits<T>(random, outer * n), repeated<T>(random, outer * n)}) {
                std::vector<std::uint64_t> payload(x.size());
                for (auto& v : payload)
                    v = std::uint64_t(random()) << 32 | random();
                const auto from = f.upload(x);
                const auto with = f.upload(payload);
                const auto keys = f.upload(test::poisoned<T>(x.size() + 1));
                const auto values = f.upload(test::poisoned<std::uint64_t>(x.size() + 1));
                auto ec = run_listed(f, prim::sort<T>{.x = from, .y = keys, .n = n, .outer = outer, .order = order});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto sorted = f.download(keys);
                ec = run_listed(f, prim::sort_pairs<T>{.keys = from,
                                                       .values = with,
                                                       .sorted_keys = keys,
                                                       .sorted_values = values,
                                                       .n = n,
                                                       .outer = outer,
                                                       .order = order});
                REQUIRE_MESSAGE(!ec, ec.message());
                const auto pair_keys = f.download(keys);
                const auto pair_values = f.download(values);
                std::size_t wrong = !test::same_bytes(sorted.back(), test::poisoned<T>(1)[0]);
                wrong += pair_values.back() != test::poisoned<std::uint64_t>(1)[0];
                for (std::uint64_t row = 0; row < outer; ++row) {
                    const auto expected = sorted_indices(x.data() + row * n, n, order);
                    for (std::uint64_t i = 0; i < n; ++i) {
                        const std::uint64_t at = row * n + expected[i];
                        wrong += !test::same_bytes(sorted[row * n + i], x[at]);
                        wrong += !test::same_bytes(pair_keys[row * n + i], x[at]);
                        wrong += pair_values[row * n + i] != payload[at];
                    }
                }
                CHECK_MESSAGE(wrong == 0, x.size() << " elements");
            }
    });
}

TEST_CASE("refusals of sorts")
{
    using top = prim::top_k<float>;
    using sort = prim::sort<float>;
    using pairs = prim::sort_pairs<float>;
    const auto x = elements(12, 0);
    const auto y = elements(4, 1);
    const auto i = elements<std::uint64_t>(4, 2);
    const auto order = static_cast<sort_order>(2);
    const struct {
        error_code got;
        errc code;
        std::string message;
    } rows[] = {
        {top{.x = x, .values = y, .indices = i, .k = 2}.check(), errc::invalid_argument, "prim.top_k: n is 0"},
        {top{.x = x, .values = y, .indices = i, .n = 12}.check(), errc::invalid_argument, "prim.top_k: k is 0"},
        {top{.x = x, .values = y, .indices = i, .n = 2, .k = 3}.check(), errc::invalid_argument,
         "prim.top_k: k is 3, a row has 2 elements"},
        {top{.x = x, .values = y, .indices = i, .n = 6, .k = 3, .outer = 2}.check(), errc::out_of_bounds,
         "prim.top_k: values has 4 elements, needs 6"},
        {top{.x = x, .values = x, .indices = i, .n = 6, .k = 3, .outer = 2}.check(), errc::out_of_bounds,
         "prim.top_k: indices has 4 elements, needs 6"},
        {top{.x = x, .values = y, .indices = i, .n = 7, .k = 1, .outer = 2}.check(), errc::out_of_bounds,
         "prim.top_k: x has 12 elements, needs 14"},
        {top{.x = x, .values = y, .indices = i, .n = 12, .k = 3, .order = order}.check(), errc::invalid_argument,
         "prim.top_k: order is 2, which is not a prim::sort_order"},
        {sort{.x = x, .y = y, .n = 5}.check(), errc::out_of_bounds, "prim.sort: y has 4 elements, needs 5"},
        {sort{.x = x, .y = y, .n = 2, .outer = 0}.check(), errc::invalid_argument, "prim.sort: outer is 0"},
        {pairs{.keys = x, .values = i, .sorted_keys = x, .sorted_values = i, .n = 5}.check(), errc::out_of_bounds,
         "prim.sort_pairs: values has 4 elements, needs 5"},
        {pairs{.keys = x, .values = i, .sorted_keys = y.first(3), .sorted_values = i, .n = 4}.check(),
         errc::out_of_bounds, "prim.sort_pairs: sorted_keys has 3 elements, needs 4"},
    };
    for (const auto& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto all = f.upload(std::vector<float>(12));
        CHECK(run_listed(f, sort{.x = all, .y = all, .n = 12}) == errc::overlap);
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_order
