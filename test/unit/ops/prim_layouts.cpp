#include "prim/loop_shape.hpp"
#include "support/device_fixture.hpp"
#include "support/prim.hpp"

#include <coaccel/ops/prim.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace test_ops_prim_layouts {

// Layouts with broadcasting, on any device.
namespace {

using namespace coaccel;
using prim::dimensions;
using prim::layout;
using test::await;
using test::device_fixture;

/// Strides of a random order of the dimensions, with gaps. Inputs repeat some of them.
dimensions random_strides(std::mt19937& random, std::uint64_t rank, const dimensions& dims, bool is_result)
{
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (random() % 2)
        std::shuffle(order.begin(), order.end(), random);
    else
        std::reverse(order.begin(), order.end());
    dimensions made{};
    std::uint64_t next = 1 + (random() % 3 == 0 ? random() % 3 : 0);
    for (const std::size_t d : order) {
        made[d] = next;
        if (!is_result && random() % 4 == 0) {
            made[d] = 0;
            continue;
        }
        next = next * dims[d] + (random() % 3 == 0 ? random() % 4 : 0);
    }
    return made;
}

std::uint64_t extent_of(std::uint64_t rank, const dimensions& dims, const dimensions& strides)
{
    std::uint64_t last = 0;
    for (std::size_t d = 0; d < rank; ++d)
        last += (dims[d] - 1) * strides[d];
    return last + 1;
}

template <std::size_t Operands>
layout<Operands> random_layout(std::mt19937& random)
{
    layout<Operands> made;
    made.rank = 1 + random() % 6;
    for (std::size_t d = 0; d < made.rank; ++d)
        made.dims[d] = 1 + random() % (made.rank > 3 ? 4 : 9);
    for (std::size_t k = 0; k < Operands; ++k)
        made.strides[k] = random_strides(random, made.rank, made.dims, k + 1 == Operands);
    return made;
}

/// Calls `use` with the places of each element, by counting through all indices.
template <std::size_t Operands, class Use>
void for_each_place(const layout<Operands>& l, Use use)
{
    dimensions index{};
    for (bool more = true; more;) {
        std::array<std::uint64_t, Operands> at{};
        for (std::size_t k = 0; k < Operands; ++k)
            for (std::size_t d = 0; d < l.rank; ++d)
                at[k] += index[d] * l.strides[k][d];
        use(at);
        more = false;
        for (std::size_t d = 0; d < l.rank && !more; ++d) {
            index[d] = (index[d] + 1) % l.dims[d];
            more = index[d] != 0;
        }
    }
}

template <class T>
std::vector<T> input(std::mt19937& random, std::uint64_t size)
{
    return test::random_elements<T>(random, size, 0, 100);
}

template <std::size_t Operands>
std::uint64_t size_of(const layout<Operands>& l, std::size_t k)
{
    return extent_of(l.rank, l.dims, l.strides[k]);
}

} // namespace

TEST_SUITE_BEGIN("prim layouts");

TEST_CASE("random layouts compute every element and nothing else")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(7);
        for (int i = 0; i < 150; ++i) {
            const auto l = random_layout<3>(random);
            CAPTURE(i);
            const auto a = input<std::int32_t>(random, size_of(l, 0));
            const auto b = input<std::int32_t>(random, size_of(l, 1));
            const std::size_t room = size_of(l, 2) + 5;
            auto expected = test::poisoned<std::int32_t>(room);
            for_each_place(l, [&](const auto& at) { expected[at[2] + 2] = a[at[0]] - b[at[1]]; });
            const auto x = f.upload(a);
            const auto y = f.upload(b);
            const auto z = f.upload(test::poisoned<std::int32_t>(room));
            const auto ec = f.error_of(prim::binary<std::int32_t>{
                .a = x, .b = y, .c = z.subspan(2, size_of(l, 2)), .what = prim::integer_binary::sub, .shape = l});
            REQUIRE_MESSAGE(!ec, ec.message());
            CHECK((f.download(z) == expected));
        }
    }
}

TEST_CASE("random layouts of one, and of three inputs of different types")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(8);
        for (int i = 0; i < 60; ++i) {
            CAPTURE(i);
            const auto one = random_layout<2>(random);
            const auto x = input<half>(random, size_of(one, 0));
            auto expected = test::poisoned<half>(size_of(one, 1));
            for_each_place(one, [&](const auto& at) { expected[at[1]] = -x[at[0]]; });
            const auto from = f.upload(x);
            const auto to = f.upload(test::poisoned<half>(size_of(one, 1)));
            auto ec = f.error_of(prim::unary<half>{.x = from, .y = to, .what = prim::real_function::neg, .shape = one});
            REQUIRE_MESSAGE(!ec, ec.message());
            const auto negated = f.download(to);
            CHECK(std::equal(negated.begin(), negated.end(), expected.begin(), test::same_bytes<half>));

            const auto three = random_layout<4>(random);
            std::vector<std::uint8_t> mask(size_of(three, 0));
            for (auto& m : mask)
                m = static_cast<std::uint8_t>(random() % 2 * (random() % 256));
            const auto a = input<double>(random, size_of(three, 1));
            const auto b = input<double>(random, size_of(three, 2));
            auto chosen = test::poisoned<double>(size_of(three, 3));
            for_each_place(three, [&](const auto& at) { chosen[at[3]] = mask[at[0]] ? a[at[1]] : b[at[2]]; });
            const auto m = f.upload(mask);
            const auto p = f.upload(a);
            const auto q = f.upload(b);
            const auto r = f.upload(test::poisoned<double>(size_of(three, 3)));
            ec = f.error_of(prim::where<double>{.mask = m, .a = p, .b = q, .c = r, .shape = three});
            REQUIRE_MESSAGE(!ec, ec.message());
            const auto got = f.download(r);
            CHECK(std::equal(got.begin(), got.end(), chosen.begin(), test::same_bytes<double>));
        }
    }
}

TEST_CASE("a matrix with a row, a column and a scalar")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto m = f.upload(std::vector<float>{1, 2, 3, 4, 5, 6});
        const auto v = f.upload(std::vector<float>{10, 20, 30});
        const auto r = f.upload(test::poisoned<float>(6));
        const auto matrix = layout<3>::matrix(2, 3);
        const prim::binary<float> add{.a = m, .b = v, .c = r};
        auto op = add;
        op.shape = matrix.row(1);
        REQUIRE_FALSE(f.error_of(op));
        CHECK(f.download(r) == std::vector<float>{11, 22, 33, 14, 25, 36});
        op.shape = matrix.column(1);
        REQUIRE_FALSE(f.error_of(op));
        CHECK(f.download(r) == std::vector<float>{11, 12, 13, 24, 25, 26});
        op.shape = matrix.scalar(1);
        REQUIRE_FALSE(f.error_of(op));
        CHECK(f.download(r) == std::vector<float>{11, 12, 13, 14, 15, 16});
        // The transposed matrix.
        op.shape = layout<3>::matrix(3, 2).operand(0, {1, 3}).column(1);
        REQUIRE_FALSE(f.error_of(op));
        CHECK(f.download(r) == std::vector<float>{11, 14, 22, 25, 33, 36});
    }
}

TEST_CASE("the result may be an operand")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto x = f.upload(std::vector<float>{1, 2, 3, 4});
        const auto y = f.upload(std::vector<float>{5, 6, 7, 8});
        REQUIRE_FALSE(f.error_of(prim::unary<float>{.x = x, .y = x, .what = prim::real_function::square}));
        CHECK(f.download(x) == std::vector<float>{1, 4, 9, 16});
        REQUIRE_FALSE(f.error_of(prim::binary<float>{.a = y, .b = x, .c = y, .what = prim::real_binary::sub}));
        CHECK(f.download(y) == std::vector<float>{4, 2, -2, -8});
        REQUIRE_FALSE(f.error_of(prim::binary<float>{.a = y, .b = y, .c = y, .what = prim::real_binary::add}));
        CHECK(f.download(y) == std::vector<float>{8, 4, -4, -16});
        // Interleaved with the elements between them, which is an overlap of other elements.
        CHECK(f.error_of(prim::unary<float>{.x = x.subspan(0, 3), .y = x.subspan(1, 3)}) == errc::overlap);
    }
}

TEST_CASE("plans record elementwise ops, and run again with other inputs")
{
    constexpr std::size_t rows = 5;
    constexpr std::size_t columns = 301;
    plan_builder b("elementwise");
    const auto x = b.input<float>(rows * columns, "x");
    const auto bias = b.constant<float>(std::vector<float>(columns, 2), "bias");
    const auto mask = b.scratch<std::uint8_t>(rows * columns, "mask");
    const auto sum = b.scratch<float>(rows * columns, "sum");
    const auto y = b.output<half>(rows * columns, "y");
    b.add(prim::binary<float>{
        .a = x, .b = bias, .c = sum, .what = prim::real_binary::mul, .shape = layout<3>::matrix(rows, columns).row(1)});
    b.add(prim::compare<float>{.a = sum, .b = x, .c = mask, .what = prim::comparison::greater});
    b.add(prim::where<float>{.mask = mask, .a = sum, .b = x, .c = sum});
    b.add(prim::cast<float, half>{.x = sum, .y = y});
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        auto loaded = await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        std::mt19937 random(9);
        for (int run = 0; run < 3; ++run) {
            const auto in = test::random_elements<float>(random, rows * columns, -50, 50);
            auto out = test::poisoned<half>(rows * columns);
            REQUIRE(await(f.io, loaded.value().async_run(from(in), to(out))));
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < in.size(); ++i)
                wrong += out[i] != half(std::max(in[i], 2 * in[i]));
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("dimensions that all operands traverse in one go are joined")
{
    const auto packed = loops_of(layout<2>::packed({2, 3, 4}), 24);
    CHECK(packed.count == 24);
    CHECK(packed.rank == 1);
    CHECK(packed.dims[0] == 24);
    CHECK(packed.strides[0][0] == 1);
    const auto row = loops_of(layout<3>::packed({2, 3, 4}).row(1), 24);
    CHECK(row.rank == 2);
    CHECK(row.dims[0] == 6);
    CHECK(row.dims[1] == 4);
    CHECK(row.strides[1] == dimensions{0, 1});
    CHECK(row.strides[2] == dimensions{4, 1});
    const auto scalar = loops_of(layout<2>::packed({7, 5}).scalar(0), 35);
    CHECK(scalar.rank == 1);
    CHECK(scalar.strides[0][0] == 0);
    const auto single = loops_of(layout<2>::packed({1, 1, 1}), 1);
    CHECK(single.count == 1);
    CHECK(single.rank == 1);
    CHECK(single.dims[0] == 1);
    const auto none = loops_of(layout<2>(), 9);
    CHECK(none.count == 9);
    CHECK(none.rank == 1);
}

TEST_SUITE_END();

} // namespace test_ops_prim_layouts
