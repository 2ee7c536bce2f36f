#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace test_ops_prim_check {

// The refusals of the ops in `prim`, with their messages.
namespace {

using namespace coaccel;
using prim::layout;
using test::elements;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

struct row {
    error_code got;
    errc code;
    std::string message;
};

void check(const std::vector<row>& rows)
{
    for (const row& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
}

error_code with_shape(const layout<2>& shape, std::uint64_t x = 12, std::uint64_t y = 12)
{
    return prim::unary<float>{.x = elements(x, 0), .y = elements(y, 1), .shape = shape}.check();
}

error_code in_one_buffer(std::uint64_t from, std::uint64_t to, const layout<2>& shape)
{
    return prim::unary<float>{.x = elements(100, 0, from), .y = elements(100, 0, to), .shape = shape}.check();
}

} // namespace

TEST_SUITE_BEGIN("prim checks");

TEST_CASE("packed operands have the same length, and the result is not empty")
{
    CHECK_FALSE(with_shape({}));
    check({
        {with_shape({}, 12, 0), errc::invalid_argument, "prim.unary: y has 0 elements"},
        {with_shape({}, 11, 12), errc::length_mismatch, "prim.unary: x has 11 elements, y 12"},
        {prim::binary<float>{.a = elements(3, 0), .b = elements(4, 1), .c = elements(3, 2)}.check(),
         errc::length_mismatch, "prim.binary: b has 4 elements, c 3"},
        {prim::sequence<float>{}.check(), errc::invalid_argument, "prim.sequence: dst has 0 elements"},
    });
}

TEST_CASE("a layout must fit into its operands, without overflow")
{
    CHECK_FALSE(with_shape(layout<2>::matrix(3, 4)));
    CHECK_FALSE(with_shape(layout<2>::matrix(3, 4).row(0), 4));
    CHECK_FALSE(with_shape(layout<2>::matrix(3, 4).column(0), 3));
    CHECK_FALSE(with_shape(layout<2>::matrix(3, 4).scalar(0), 1));
    // A dimension of one element needs no more memory, however large its stride is.
    CHECK_FALSE(with_shape(layout<2>::matrix(1, 12).operand(0, {huge, 1})));
    check({
        {with_shape(layout<2>::packed({1, 1, 1, 1, 1, 1, 1})), errc::invalid_argument,
         "prim.unary: shape has 7 dimensions, at most 6 are possible"},
        {with_shape(layout<2>::matrix(3, 0)), errc::invalid_argument, "prim.unary: dimension 1 of shape is 0"},
        {with_shape(layout<2>::matrix(3, 5)), errc::out_of_bounds, "prim.unary: x has 12 elements, needs 15"},
        {with_shape(layout<2>::matrix(3, 4).operand(1, {5, 1})), errc::out_of_bounds,
         "prim.unary: y has 12 elements, needs 14"},
        {with_shape(layout<2>::matrix(huge, 2)), errc::size_overflow,
         "prim.unary: the number of elements of shape overflows 64 bits"},
        {with_shape(layout<2>::matrix(3, 4).operand(0, {huge, 1})), errc::size_overflow,
         "prim.unary: the number of elements that x needs overflows 64 bits"},
        {with_shape(layout<2>::matrix(2, 2).operand(0, {huge, 1})), errc::size_overflow,
         "prim.unary: the number of elements that x needs overflows 64 bits"},
    });
}

TEST_CASE("the elements of the result are different ones")
{
    const auto m = layout<2>::matrix(3, 4);
    CHECK_FALSE(with_shape(m.operand(1, {1, 3})));
    CHECK_FALSE(with_shape(layout<2>::matrix(1, 4).operand(1, {0, 1})));
    check({
        {with_shape(m.scalar(1)), errc::invalid_argument,
         "prim.unary: the strides of y give two elements the same place"},
        {with_shape(m.row(1)), errc::invalid_argument, "prim.unary: the strides of y give two elements the same place"},
        {with_shape(m.operand(1, {3, 1})), errc::invalid_argument,
         "prim.unary: the strides of y give two elements the same place"},
    });
}

TEST_CASE("the result overlaps an operand only if both are the same")
{
    CHECK_FALSE(in_one_buffer(0, 0, {}));
    CHECK_FALSE(in_one_buffer(0, 100, {}));
    CHECK_FALSE(in_one_buffer(0, 0, layout<2>::matrix(3, 4)));
    CHECK_FALSE(in_one_buffer(0, 12, layout<2>::matrix(3, 4)));
    const std::string text = "prim.unary: y and x overlap without being the same";
    check({
        {in_one_buffer(0, 1, {}), errc::overlap, text},
        {in_one_buffer(99, 0, {}), errc::overlap, text},
        {in_one_buffer(0, 11, layout<2>::matrix(3, 4)), errc::overlap, text},
        {in_one_buffer(0, 0, layout<2>::matrix(3, 3).operand(0, {1, 3})), errc::overlap, text},
        {in_one_buffer(0, 0, layout<2>::matrix(3, 4).row(0)), errc::overlap, text},
    });
}

TEST_CASE("values that are not enumerators, and limits in the wrong order, are refused")
{
    const auto x = elements(4, 0);
    const auto i = elements<std::int32_t>(4, 0);
    const auto bytes = elements<std::uint8_t>(4, 1);
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    check({
        {prim::unary<float>{.x = x, .y = x, .what = static_cast<prim::real_function>(23)}.check(),
         errc::invalid_argument, "prim.unary: what is 23, which is not a prim::real_function"},
        {prim::unary<std::int32_t>{.x = i, .y = i, .what = static_cast<prim::integer_function>(7)}.check(),
         errc::invalid_argument, "prim.unary: what is 7, which is not a prim::integer_function"},
        {prim::binary<float>{.a = x, .b = x, .c = x, .what = static_cast<prim::real_binary>(10)}.check(),
         errc::invalid_argument, "prim.binary: what is 10, which is not a prim::real_binary"},
        {prim::binary<std::int32_t>{.a = i, .b = i, .c = i, .what = static_cast<prim::integer_binary>(14)}.check(),
         errc::invalid_argument, "prim.binary: what is 14, which is not a prim::integer_binary"},
        {prim::compare<float>{.a = x, .b = x, .c = bytes, .what = static_cast<prim::comparison>(6)}.check(),
         errc::invalid_argument, "prim.compare: what is 6, which is not a prim::comparison"},
        {prim::ternary<float>{.a = x, .b = x, .c = x, .d = x, .what = static_cast<prim::ternary_function>(2)}.check(),
         errc::invalid_argument, "prim.ternary: what is 2, which is not a prim::ternary_function"},
        {prim::clamp<float>{.x = x, .y = x, .low = 2, .high = 1}.check(), errc::invalid_argument,
         "prim.clamp: low is not at most high"},
        {prim::clamp<float>{.x = x, .y = x, .low = nan, .high = 1}.check(), errc::invalid_argument,
         "prim.clamp: low is not at most high"},
    });
}

TEST_CASE("an op overwrites its result if its layout has all elements")
{
    prim::unary<float> op{.x = elements(12, 0), .y = elements(12, 1)};
    CHECK(op.overwrites());
    op.shape = layout<2>::matrix(3, 4);
    CHECK(op.overwrites());
    op.shape = layout<2>::matrix(3, 3);
    CHECK_FALSE(op.overwrites());
}

TEST_CASE("the name of a cast has both types")
{
    CHECK((info_of<prim::cast<float, half>>().name == "prim.cast<f16 from f32>"));
    CHECK((info_of<prim::cast<float, half>>().id != info_of<prim::cast<double, half>>().id));
    CHECK(info_of<prim::unary<float>>().name == "prim.unary<f32>");
}

TEST_SUITE_END();

} // namespace test_ops_prim_check
