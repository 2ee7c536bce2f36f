#include "support/device_fixture.hpp"
#include "support/prim.hpp"
#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace test_ops_prim_move {

// Ops that move elements, on any device.
namespace {

using namespace coaccel;
using prim::dimensions;
using test::device_fixture;
using test::elements;
using test::run_listed;
using test::same_bytes;

template <class Run>
void for_each_type(Run run)
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        test::for_each_type(element_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            std::mt19937 random(51);
            run.template operator()<T>(f, random);
        });
    }
}

struct axis {
    std::uint64_t outer, n, m, inner;
};

constexpr axis axes[] = {{1, 1, 1, 1}, {1, 9, 500, 1}, {3, 700, 7, 2}, {2, 5, 40, 33}};

} // namespace

TEST_SUITE_BEGIN("prim moves");

TEST_CASE("gather reads the elements of the indices, and zeros beyond the end")
{
    for_each_type([]<class T>(device_fixture& f, std::mt19937& random) {
        for (const auto& [outer, n, m, inner] : axes) {
            std::vector<std::uint64_t> indices(m);
            for (auto& i : indices)
                i = random() % 10 == 0 ? n + random() % 3 * (std::uint64_t(1) << 62) : random() % n;
            const auto x = test::random_bits<T>(random, outer * n * inner);
            const auto from = f.upload(x);
            const auto at = f.upload(indices);
            const auto to = f.upload(test::poisoned<T>(outer * m * inner + 1));
            const auto ec = run_listed(
                f, prim::gather<T>{.x = from, .indices = at, .y = to, .n = n, .m = m, .outer = outer, .inner = inner});
            REQUIRE_MESSAGE(!ec, ec.message());
            const auto y = f.download(to);
            std::vector<T> zero(1);
            std::memset(static_cast<void*>(zero.data()), 0, sizeof(T));
            std::size_t wrong = !same_bytes(y.back(), test::poisoned<T>(1)[0]);
            for (std::uint64_t k = 0; k + 1 < y.size(); ++k) {
                const std::uint64_t index = indices[k / inner % m];
                const T& expected = index < n ? x[k / inner / m * n * inner + index * inner + k % inner] : zero[0];
                wrong += !same_bytes(y[k], expected);
            }
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("scatter writes to the indices; of equal ones the last counts")
{
    for_each_type([]<class T>(device_fixture& f, std::mt19937& random) {
        for (const auto& [outer, n, m, inner] : axes) {
            std::vector<std::uint64_t> indices(m);
            for (auto& i : indices)
                i = random() % 10 == 0 ? n + random() % 3 * (std::uint64_t(1) << 62) : random() % n;
            const auto x = test::random_bits<T>(random, outer * m * inner);
            const auto before = test::random_bits<T>(random, outer * n * inner + 1);
            const auto from = f.upload(x);
            const auto at = f.upload(indices);
            const auto to = f.upload(before);
            const auto ec = run_listed(
                f, prim::scatter<T>{.x = from, .indices = at, .y = to, .n = n, .m = m, .outer = outer, .inner = inner});
            REQUIRE_MESSAGE(!ec, ec.message());
            const auto y = f.download(to);
            std::size_t wrong = !same_bytes(y.back(), before.back());
            for (std::uint64_t k = 0; k + 1 < y.size(); ++k) {
                // Searched from the end.
                const auto last = std::find(indices.rbegin(), indices.rend(), k / inner % n);
                const auto j = static_cast<std::uint64_t>(indices.rend() - last) - 1;
                const T& expected = last == indices.rend() ? before[k] : x[(k / inner / n * m + j) * inner + k % inner];
                wrong += !same_bytes(y[k], expected);
            }
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("concat joins two tensors along an axis")
{
    for_each_type([]<class T>(device_fixture& f, std::mt19937& random) {
        for (const auto& [outer, n, m, inner] : axes) {
            const auto a = test::random_bits<T>(random, outer * n * inner);
            const auto b = test::random_bits<T>(random, outer * m * inner);
            const auto first = f.upload(a);
            const auto second = f.upload(b);
            const auto to = f.upload(test::poisoned<T>(outer * (n + m) * inner + 1));
            const auto ec = run_listed(
                f, prim::concat<T>{.a = first, .b = second, .y = to, .n = n, .m = m, .outer = outer, .inner = inner});
            REQUIRE_MESSAGE(!ec, ec.message());
            const auto y = f.download(to);
            std::size_t wrong = !same_bytes(y.back(), test::poisoned<T>(1)[0]);
            std::size_t next_a = 0;
            std::size_t next_b = 0;
            for (std::uint64_t k = 0; k + 1 < y.size(); ++k)
                wrong += !same_bytes(y[k], k / inner % (n + m) < n ? a[next_a++] : b[next_b++]);
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("pad puts a border around a tensor of up to 6 dimensions")
{
    for_each_type([]<class T>(device_fixture& f, std::mt19937& random) {
        for (std::uint64_t rank = 1; rank <= 6; ++rank) {
            prim::pad<T> op{.x = {}, .y = {}, .rank = rank, .value = test::random_bits<T>(random, 1)[0]};
            std::uint64_t from = 1;
            std::uint64_t to = 1;
            for (std::size_t d = 0; d < rank; ++d) {
                op.dims[d] = 1 + random() % (rank > 3 ? 3 : 9);
                op.before[d] = random() % 3;
                op.after[d] = random() % 3;
                from *= op.dims[d];
                to *= op.before[d] + op.dims[d] + op.after[d];
            }
            const auto x = test::random_bits<T>(random, from);
            const auto src = f.upload(x);
            const auto dst = f.upload(test::poisoned<T>(to + 1));
            op.x = src;
            op.y = dst;
            const auto ec = run_listed(f, op);
            REQUIRE_MESSAGE(!ec, ec.message());
            const auto y = f.download(dst);
            std::size_t wrong = !same_bytes(y.back(), test::poisoned<T>(1)[0]);
            std::size_t next = 0;
            for (std::uint64_t i = 0; i < to; ++i) {
                bool inside = true;
                std::uint64_t rest = i;
                for (std::size_t d = rank; d-- > 0;) {
                    const std::uint64_t size = op.before[d] + op.dims[d] + op.after[d];
                    const std::uint64_t index = rest % size;
                    rest /= size;
                    inside = inside && index >= op.before[d] && index < op.before[d] + op.dims[d];
                }
                wrong += !same_bytes(y[i], inside ? x[next++] : op.value);
            }
            CHECK(next == from);
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("transpose changes the order of the dimensions")
{
    for_each_type([]<class T>(device_fixture& f, std::mt19937& random) {
        std::vector<prim::transpose<T>> ops{
            {.x = {}, .y = {}, .dims = {1, 1}},
            {.x = {}, .y = {}, .dims = {5, 70}},
            {.x = {}, .y = {}, .dims = {100, 33}},
            {.x = {}, .y = {}, .rank = 3, .dims = {2, 40, 7}, .order = {0, 2, 1}},
            {.x = {}, .y = {}, .rank = 3, .dims = {6, 5, 34}, .order = {2, 0, 1}},
            {.x = {}, .y = {}, .rank = 3, .dims = {6, 5, 4}, .order = {0, 1, 2}},
            {.x = {}, .y = {}, .rank = 1, .dims = {9}, .order = {0}},
            {.x = {}, .y = {}, .rank = 4, .dims = {3, 4, 5, 2}, .order = {0, 2, 1, 3}},
            {.x = {}, .y = {}, .rank = 6, .dims = {2, 3, 2, 3, 2, 3}, .order = {5, 3, 1, 0, 2, 4}},
        };
        for (auto& op : ops) {
            const std::uint64_t count = std::accumulate(op.dims.begin(), op.dims.begin() + std::ptrdiff_t(op.rank),
                                                        std::uint64_t(1), std::multiplies<>());
            const auto x = test::random_bits<T>(random, count);
            const auto from = f.upload(x);
            const auto to = f.upload(test::poisoned<T>(count + 1));
            op.x = from;
            op.y = to;
            const auto ec = run_listed(f, op);
            REQUIRE_MESSAGE(!ec, ec.message());
            const auto y = f.download(to);
            std::size_t wrong = !same_bytes(y.back(), test::poisoned<T>(1)[0]);
            for (std::uint64_t i = 0; i < count; ++i) {
                dimensions index{};
                std::uint64_t rest = i;
                for (std::size_t d = op.rank; d-- > 0; rest /= op.dims[d])
                    index[d] = rest % op.dims[d];
                std::uint64_t at = 0;
                for (std::size_t d = 0; d < op.rank; ++d)
                    at = at * op.dims[op.order[d]] + index[op.order[d]];
                wrong += !same_bytes(y[at], x[i]);
            }
            CHECK_MESSAGE(wrong == 0, "rank " << op.rank);
        }
    });
}

TEST_CASE("refusals of ops that move elements")
{
    constexpr auto huge = ~std::uint64_t(0);
    const auto x = elements(12, 0);
    const auto y = elements(12, 1);
    const auto i = elements<std::uint64_t>(4, 2);
    using gather = prim::gather<float>;
    using scatter = prim::scatter<float>;
    using concat = prim::concat<float>;
    using pad = prim::pad<float>;
    using transpose = prim::transpose<float>;
    const struct {
        error_code got;
        errc code;
        std::string message;
    } rows[] = {
        {gather{.x = x, .indices = i, .y = y, .m = 4}.check(), errc::invalid_argument, "prim.gather: n is 0"},
        {gather{.x = x, .indices = i, .y = y, .n = 3}.check(), errc::invalid_argument, "prim.gather: m is 0"},
        {gather{.x = x, .indices = i, .y = y, .n = 13, .m = 4}.check(), errc::out_of_bounds,
         "prim.gather: x has 12 elements, needs 13"},
        {gather{.x = x, .indices = i, .y = y, .n = 3, .m = 5}.check(), errc::out_of_bounds,
         "prim.gather: indices has 4 elements, needs 5"},
        {gather{.x = x, .indices = i, .y = y, .n = 3, .m = 4, .inner = 4}.check(), errc::out_of_bounds,
         "prim.gather: y has 12 elements, needs 16"},
        {gather{.x = x, .indices = i, .y = y, .n = huge, .m = 4, .inner = 2}.check(), errc::size_overflow,
         "prim.gather: the number of elements that x needs overflows 64 bits"},
        {scatter{.x = x, .indices = i, .y = y, .n = 3, .m = 4, .outer = 0}.check(), errc::invalid_argument,
         "prim.scatter: outer is 0"},
        {scatter{.x = x, .indices = i, .y = y, .n = 13, .m = 4}.check(), errc::out_of_bounds,
         "prim.scatter: y has 12 elements, needs 13"},
        {scatter{.x = x, .indices = i, .y = y, .n = 3, .m = 4, .inner = 4}.check(), errc::out_of_bounds,
         "prim.scatter: x has 12 elements, needs 16"},
        {concat{.a = x, .b = x, .y = y, .n = 6, .m = 7}.check(), errc::out_of_bounds,
         "prim.concat: y has 12 elements, needs 13"},
        {concat{.a = x, .b = x, .y = y, .n = 6}.check(), errc::invalid_argument, "prim.concat: m is 0"},
        {concat{.a = x, .b = x, .y = y, .n = 2, .m = 13}.check(), errc::out_of_bounds,
         "prim.concat: b has 12 elements, needs 13"},
        {concat{.a = x, .b = x, .y = y, .n = 1, .m = huge}.check(), errc::out_of_bounds,
         "prim.concat: b has 12 elements, needs 18446744073709551615"},
        {pad{.x = x, .y = y}.check(), errc::invalid_argument, "prim.pad: dims[0] is 0"},
        {pad{.x = x, .y = y, .rank = 0}.check(), errc::invalid_argument, "prim.pad: rank is 0"},
        {pad{.x = x, .y = y, .rank = 7}.check(), errc::invalid_argument,
         "prim.pad: rank is 7, at most 6 dimensions are possible"},
        {pad{.x = x, .y = y, .rank = 2, .dims = {3, 4}, .after = {0, 1}}.check(), errc::out_of_bounds,
         "prim.pad: y has 12 elements, needs 15"},
        {pad{.x = x, .y = y, .rank = 1, .dims = {3}, .before = {huge}}.check(), errc::size_overflow,
         "prim.pad: the number of elements that y needs overflows 64 bits"},
        {transpose{.x = x, .y = y, .dims = {3, 5}}.check(), errc::out_of_bounds,
         "prim.transpose: x has 12 elements, needs 15"},
        {transpose{.x = x, .y = y, .rank = 3, .dims = {3, 2, 2}, .order = {0, 1, 1}}.check(), errc::invalid_argument,
         "prim.transpose: order does not have each of the 3 dimensions once"},
        {transpose{.x = x, .y = y, .dims = {3, 4}, .order = {0, 2}}.check(), errc::invalid_argument,
         "prim.transpose: order does not have each of the 2 dimensions once"},
    };
    for (const auto& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_move
