#include "support/refusals.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace test_ops_blas_matmul_messages {

// The error messages of refused products: op, field and value.
namespace {

using namespace coaccel;
using blas::activation;
using blas::order;
using blas::transpose;
using test::elements;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
constexpr auto invalid = errc::invalid_argument;
constexpr auto leading = errc::leading_dimension;
constexpr auto bounds = errc::out_of_bounds;
constexpr auto overflow = errc::size_overflow;
constexpr auto length = errc::length_mismatch;

/// Checks that the op is accepted, and how it is refused after each change.
template <class Op>
class matmul_refusals {
public:
    explicit matmul_refusals(const Op& good) : good_(good) { CHECK(good.check().message() == error_code().message()); }

    template <class Change>
    void operator()(const char* name, errc code, const std::string& message, Change change) const
    {
        INFO(std::string(name));
        const auto got = changed(change).check();
        CHECK(got.message() == std::string(Op::name) + ": " + message);
        CHECK_MESSAGE(got == code, message);
    }

    template <class Change>
    void accepted(const char* name, Change change) const
    {
        INFO(std::string(name));
        const auto got = changed(change).check();
        CHECK_MESSAGE(!got, got.message());
    }

private:
    template <class Change>
    Op changed(Change change) const
    {
        Op other = good_;
        change(other);
        return other;
    }

    Op good_;
};

/// A new ref of the type of an operand, in the memory of another one of the same name.
template <class Operand>
void resize(Operand& field, std::uint64_t size, std::uint64_t offset = 0)
{
    field = elements<typename Operand::value_type>(size, field.raw.slot, offset);
}

/// Gives an optional operand a buffer, which is in no other operand.
template <class Operand>
void give(Operand& field, std::uint64_t size, std::uint64_t offset = 0)
{
    field = elements<typename Operand::value_type>(size, 9, offset);
}

/// D is 16 by 16, k is 32. Without C, bias and scales. In row-major order all matrices are the transposed ones, so that
/// A and B exchange their places.
template <class Op>
Op good_product(order storage = order::column_major)
{
    using A = typename Op::source_type;
    using B = typename Op::second_type;
    const bool by_rows = storage == order::row_major;
    return {.a = elements<A>(512, 0),
            .b = elements<B>(512, 1),
            .d = elements<typename Op::value_type>(256, 2),
            .m = 16,
            .n = 16,
            .k = 32,
            .trans_a = by_rows ? transpose::no : transpose::yes,
            .trans_b = by_rows ? transpose::yes : transpose::no,
            .order = storage};
}

/// What all products refuse, in both orders.
template <class Op>
void check_common()
{
    for (const auto storage : {order::column_major, order::row_major}) {
        const matmul_refusals refused(good_product<Op>(storage));
        const std::string lines = storage == order::row_major ? "columns" : "rows";
        refused("no rows", invalid, "m is 0", [](Op& o) { o.m = 0; });
        refused("no columns", invalid, "n is 0", [](Op& o) { o.n = 0; });
        refused("no sums", invalid, "k is 0", [](Op& o) { o.k = 0; });
        refused("no products", invalid, "batch is 0", [](Op& o) { o.batch = 0; });
        refused("products multiplied by zero", invalid, "alpha is 0", [](Op& o) { o.alpha = 0; });
        refused("more products than cuBLASLt counts", invalid, "batch is 2147483648, must be at most 2147483647",
                [](Op& o) { o.batch = std::uint64_t(1) << 31; });
        refused("too large", overflow, "m * n * k overflows 64 bits: m is 4294967296, n is 4294967296, k is 4294967296",
                [](Op& o) { o.m = o.n = o.k = std::uint64_t(1) << 32; });
        refused("no transpose of A", invalid, "trans_a is 3, which is not a blas::transpose",
                [](Op& o) { o.trans_a = transpose(3); });
        refused("no transpose of B", invalid, "trans_b is 9, which is not a blas::transpose",
                [](Op& o) { o.trans_b = transpose(9); });
        refused("no order", invalid, "order is 2, which is not a blas::order", [](Op& o) { o.order = order(2); });
        refused("no activation", invalid, "activation is 3, which is not a blas::activation",
                [](Op& o) { o.activation = activation(3); });
        refused("no math", invalid, "math is 3, which is not a blas::math", [](Op& o) { o.math = blas::math(3); });

        refused("lines of A overlap", leading, "lda is 16, a has 32 " + lines, [](Op& o) { o.lda = 16; });
        refused("lines of B overlap", leading, "ldb is 16, b has 32 " + lines, [](Op& o) { o.ldb = 16; });
        refused("lines of C overlap", leading, "ldc is 8, c has 16 " + lines, [](Op& o) { give(o.c, 256), o.ldc = 8; });
        refused("lines of D overlap", leading, "ldd is 8, d has 16 " + lines, [](Op& o) { o.ldd = 8; });
        refused("A too short", bounds, "a has 512 elements, needs 752", [](Op& o) { o.lda = 48; });
        refused("B too short", bounds, "b has 512 elements, needs 752", [](Op& o) { o.ldb = 48; });
        refused("C too short", bounds, "c has 256 elements, needs 496", [](Op& o) { give(o.c, 256), o.ldc = 32; });
        refused("D too short", bounds, "d has 256 elements, needs 496", [](Op& o) { o.ldd = 32; });
        refused("A too short for a batch", bounds, "a has 512 elements, needs 528",
                [](Op& o) { o.batch = 2, o.stride_a = 16, o.stride_d = 256, resize(o.d, 512); });
        refused("B too short for a batch", bounds, "b has 512 elements, needs 1024",
                [](Op& o) { o.batch = 2, o.stride_b = 512, o.stride_d = 256, resize(o.d, 512); });
        refused("C too short for a batch", bounds, "c has 256 elements, needs 272", [](Op& o) {
            give(o.c, 256);
            o.batch = 2, o.stride_c = 16, o.stride_d = 256, resize(o.d, 512);
        });
        refused("matrices of D overlap", leading, "stride_d is 240, one matrix of d has 256 elements",
                [](Op& o) { o.batch = 2, o.stride_d = 240; });
        refused("one D for all products", leading, "stride_d is 0, one matrix of d has 256 elements",
                [](Op& o) { o.batch = 2; });
        refused("D too short for a batch", bounds, "d has 256 elements, needs 512",
                [](Op& o) { o.batch = 2, o.stride_d = 256; });
        refused("an extent of A that overflows", overflow, "the number of elements that a needs overflows 64 bits",
                [](Op& o) { o.lda = huge - 15; });
        refused("an extent of D that overflows", overflow, "the number of elements that d needs overflows 64 bits",
                [](Op& o) { o.ldd = huge - 15; });
        refused("an extent of C that overflows", overflow, "the number of elements that c needs overflows 64 bits",
                [](Op& o) { give(o.c, 256), o.batch = 2, o.stride_c = huge - 15, o.stride_d = 256, resize(o.d, 512); });
        refused("an empty C", bounds, "c has 0 elements, needs 256",
                [](Op& o) { o.c = ref<typename Op::addend_type>(); });
        // A stride of a single matrix has no meaning.
        refused.accepted("strides of one product",
                         [](Op& o) { o.stride_a = o.stride_b = o.stride_c = o.stride_d = 1; });
        refused.accepted("one C for all products", [](Op& o) {
            give(o.c, 256);
            o.batch = 3, o.stride_d = 256, resize(o.d, 768);
        });
        // Without a buffer, C has no leading dimension.
        refused.accepted("fields of a C that is not given", [](Op& o) { o.ldc = 1, o.stride_c = 1; });
    }
}

/// The bias has an element for each row, in row-major order for each column.
template <class Op>
void check_bias()
{
    using real = typename Op::bias_type;
    for (const auto storage : {order::column_major, order::row_major}) {
        auto good = good_product<Op>(storage);
        // A side of 32 is that of the elements of the bias.
        (storage == order::row_major ? good.n : good.m) = 32;
        resize(good.a, 1024);
        resize(good.b, 1024);
        resize(good.d, 512);
        const matmul_refusals refused(good);
        refused("a bias that is too short", bounds, "bias has 31 elements, needs 32", [](Op& o) { give(o.bias, 31); });
        refused("an empty bias", bounds, "bias has 0 elements, needs 32", [](Op& o) { o.bias = ref<real>(); });
        refused.accepted("a bias", [](Op& o) { give(o.bias, 32); });
        for (const auto what : {activation::relu, activation::gelu})
            refused.accepted("an activation", [what](Op& o) { o.activation = what; });
    }
}

template <class Op>
void check_no_scales_of_factors()
{
    const matmul_refusals refused(good_product<Op>());
    refused("a scale of A", invalid, "scale_a is only for factors of fp8", [](Op& o) { give(o.scale_a, 1); });
    refused("a scale of B", invalid, "scale_b is only for factors of fp8", [](Op& o) { give(o.scale_b, 1); });
}

template <class Op>
void check_no_scale_of_result()
{
    const matmul_refusals refused(good_product<Op>());
    refused("a scale of D", invalid, "scale_d is only for results of fp8", [](Op& o) { give(o.scale_d, 1); });
    refused("a magnitude of D", invalid, "amax_d is only for results of fp8", [](Op& o) { give(o.amax_d, 1); });
}

template <class Op>
void check_real()
{
    check_common<Op>();
    check_bias<Op>();
    check_no_scales_of_factors<Op>();
    check_no_scale_of_result<Op>();
    const matmul_refusals refused(good_product<Op>());
    for (const auto a : {transpose::no, transpose::yes, transpose::conjugate})
        for (const auto b : {transpose::no, transpose::yes, transpose::conjugate})
            refused.accepted("any transposes", [=](Op& o) { o.trans_a = a, o.trans_b = b; });
    refused.accepted("nothing aligned", [](Op& o) {
        o.m = o.n = o.k = 3;
        o.lda = o.ldb = 5;
        resize(o.a, 13, 7);
    });
    refused.accepted("beta without C", [](Op& o) { o.beta = 1; });
}

/// What needs multiples of `unit` elements, of a type with this name.
template <class Op>
void check_units(std::uint64_t unit, const std::string& type)
{
    const std::string rule = ", must be a multiple of " + std::to_string(unit) + " with " + type;
    for (const auto storage : {order::column_major, order::row_major}) {
        const bool by_rows = storage == order::row_major;
        const matmul_refusals refused(good_product<Op>(storage));
        const auto odd = unit + 1;
        refused("lines of D", invalid, (by_rows ? "n is 15" : "m is 15") + rule,
                [=](Op& o) { (by_rows ? o.n : o.m) = 15; });
        refused("sums", invalid, "k is 30" + rule, [](Op& o) { o.k = 30; });
        refused.accepted("the other side of D", [=](Op& o) { (by_rows ? o.m : o.n) = 3; });
        refused("lda", leading, "lda is 33" + rule, [](Op& o) { o.lda = 33, resize(o.a, 1024); });
        refused("ldb", leading, "ldb is 33" + rule, [](Op& o) { o.ldb = 33, resize(o.b, 1024); });
        refused("ldc", leading, "ldc is 18" + rule, [](Op& o) { o.ldc = 18, give(o.c, 1024); });
        refused("ldd", leading, "ldd is 17" + rule, [](Op& o) { o.ldd = 17, resize(o.d, 1024); });
        refused("the place of A", invalid, "a starts at element 2" + rule, [](Op& o) { resize(o.a, 512, 2); });
        refused("the place of B", invalid, "b starts at element " + std::to_string(odd) + rule,
                [=](Op& o) { resize(o.b, 512, odd); });
        refused("the place of C", invalid, "c starts at element 1" + rule, [](Op& o) { give(o.c, 256, 1); });
        refused("the place of D", invalid, "d starts at element 2" + rule, [](Op& o) { resize(o.d, 256, 2); });
        refused.accepted("other places", [=](Op& o) {
            resize(o.a, 512, unit);
            resize(o.b, 512, 3 * unit);
            resize(o.d, 256, unit);
            give(o.c, 256, 5 * unit);
        });
        const auto batch = [](Op& o) {
            resize(o.a, 2048);
            resize(o.b, 2048);
            resize(o.d, 1024);
            o.batch = 2;
            o.stride_a = o.stride_b = 512;
            o.stride_d = 256;
        };
        refused.accepted("a batch", batch);
        refused("stride_a", invalid, "stride_a is 513" + rule, [=](Op& o) { batch(o), o.stride_a = 513; });
        refused("stride_b", invalid, "stride_b is 514" + rule, [=](Op& o) { batch(o), o.stride_b = 514; });
        refused("stride_c", invalid, "stride_c is 1" + rule, [=](Op& o) { batch(o), o.stride_c = 1, give(o.c, 1024); });
        refused("stride_d", invalid, "stride_d is 257" + rule, [=](Op& o) { batch(o), o.stride_d = 257; });
        refused.accepted("a stride of a C that is not given", [=](Op& o) { batch(o), o.stride_c = 1; });
    }
    const matmul_refusals by_columns(good_product<Op>());
    by_columns("A as it is", invalid, "trans_a is no, A must be transposed with " + type,
               [](Op& o) { o.trans_a = transpose::no; });
    by_columns("B transposed", invalid, "trans_b is yes, B must not be transposed with " + type,
               [](Op& o) { o.trans_b = transpose::yes; });
    by_columns("B transposed with conjugate elements", invalid,
               "trans_b is conjugate, B must not be transposed with " + type,
               [](Op& o) { o.trans_b = transpose::conjugate; });
    by_columns.accepted("A transposed with conjugate elements", [](Op& o) { o.trans_a = transpose::conjugate; });
    const matmul_refusals by_rows(good_product<Op>(order::row_major));
    by_rows("B as it is", invalid, "trans_b is no, B must be transposed with " + type + " in row-major order",
            [](Op& o) { o.trans_b = transpose::no; });
    by_rows("A transposed", invalid, "trans_a is yes, A must not be transposed with " + type + " in row-major order",
            [](Op& o) { o.trans_a = transpose::yes; });
    by_rows("A transposed with conjugate elements", invalid,
            "trans_a is conjugate, A must not be transposed with " + type + " in row-major order",
            [](Op& o) { o.trans_a = transpose::conjugate; });
    by_rows.accepted("B transposed with conjugate elements", [](Op& o) { o.trans_b = transpose::conjugate; });
}

template <class Op>
void check_scales()
{
    const matmul_refusals refused(good_product<Op>());
    refused("an empty scale of A", length, "scale_a has 0 elements, must have 1 or 16",
            [](Op& o) { o.scale_a = ref<float>(); });
    refused("an empty scale of B", length, "scale_b has 0 elements, must have 1 or 16",
            [](Op& o) { o.scale_b = ref<float>(); });
    refused("too few scales of A", length, "scale_a has 15 elements, must have 1 or 16",
            [](Op& o) { give(o.scale_a, 15); });
    refused("too many scales of B", length, "scale_b has 17 elements, must have 1 or 16",
            [](Op& o) { give(o.scale_b, 17); });
    refused("scales of rows only", invalid, "scale_a has a scale for each row, then scale_b needs one for each column",
            [](Op& o) { give(o.scale_a, 16); });
    refused("scales of rows, and one of B", invalid,
            "scale_a has a scale for each row, then scale_b needs one for each column",
            [](Op& o) { give(o.scale_a, 16), give(o.scale_b, 1); });
    refused("scales of columns only", invalid,
            "scale_b has a scale for each column, then scale_a needs one for each row",
            [](Op& o) { give(o.scale_b, 16); });
    refused("scales of columns, and one of A", invalid,
            "scale_b has a scale for each column, then scale_a needs one for each row",
            [](Op& o) { give(o.scale_b, 16), give(o.scale_a, 1); });
    refused.accepted("a scale of A", [](Op& o) { give(o.scale_a, 1); });
    refused.accepted("a scale of B", [](Op& o) { give(o.scale_b, 1); });
    refused.accepted("a scale of each", [](Op& o) { give(o.scale_a, 1), give(o.scale_b, 1); });
}

template <class Op>
void check_fp8()
{
    check_common<Op>();
    check_bias<Op>();
    check_units<Op>(16, "fp8");
    check_scales<Op>();
    const matmul_refusals refused(good_product<Op>());
    if constexpr (blas::float8_element<typename Op::value_type>) {
        refused("scales of rows and columns", invalid, "scale_a has 16 elements, must have 1 with a result of fp8",
                [](Op& o) { give(o.scale_a, 16), give(o.scale_b, 16); });
        refused("scales of one row and columns", invalid, "scale_b has 32 elements, must have 1 with a result of fp8",
                [](Op& o) {
                    o = good_product<Op>(order::row_major);
                    o.m = 1;
                    o.n = 32;
                    resize(o.b, 1024);
                    give(o.scale_a, 1);
                    give(o.scale_b, 32);
                });
        refused("an empty scale of D", length, "scale_d has 0 elements, must have 1",
                [](Op& o) { o.scale_d = ref<float>(); });
        refused("two scales of D", length, "scale_d has 2 elements, must have 1", [](Op& o) { give(o.scale_d, 2); });
        refused("no element for the magnitude", length, "amax_d has 0 elements, must have 1",
                [](Op& o) { o.amax_d = ref<float>(); });
        refused("two elements for the magnitude", length, "amax_d has 2 elements, must have 1",
                [](Op& o) { give(o.amax_d, 2); });
        refused("beta without C", invalid,
                "c has no buffer, which a result of fp8 needs unless beta is zero and no factor is a parameter",
                [](Op& o) { o.beta = 1; });
        refused.accepted("beta with C", [](Op& o) { o.beta = 1, give(o.c, 256); });
        refused.accepted("a scale and a magnitude of D", [](Op& o) { give(o.scale_d, 1), give(o.amax_d, 1); });
    } else {
        check_no_scale_of_result<Op>();
        refused.accepted("scales of rows and columns", [](Op& o) { give(o.scale_a, 16), give(o.scale_b, 16); });
        refused.accepted("scales of rows and of one column",
                         [](Op& o) { o.n = 1, give(o.scale_a, 16), give(o.scale_b, 1); });
        refused("scales of rows, and none of one column", invalid,
                "scale_a has a scale for each row, then scale_b needs one for each column",
                [](Op& o) { o.n = 1, give(o.scale_a, 16); });
        refused.accepted("scales of one row and of columns", [](Op& o) {
            o = good_product<Op>(order::row_major);
            o.m = 1;
            give(o.scale_a, 1);
            give(o.scale_b, 16);
        });
        refused("scales of rows and columns in a batch", invalid, "scale_a has 16 elements, must have 1 in a batch",
                [](Op& o) {
                    o.batch = 2;
                    o.stride_d = 256;
                    resize(o.d, 512);
                    give(o.scale_a, 16);
                    give(o.scale_b, 16);
                });
        refused.accepted("beta without C", [](Op& o) { o.beta = 1; });
    }
}

} // namespace

TEST_SUITE_BEGIN("messages of refused products");

TEST_CASE("products of f32, f16 and bf16")
{
    check_real<blas::matmul<float>>();
    check_real<blas::matmul<half>>();
    check_real<blas::matmul<half, float>>();
    check_real<blas::matmul<bfloat16>>();
    check_real<blas::matmul<bfloat16, float>>();
}

TEST_CASE("a product of i8 has sizes that are multiples of 4, without an activation, a bias and scales")
{
    using op = blas::matmul<std::int8_t>;
    check_common<op>();
    check_units<op>(4, "i8");
    check_no_scales_of_factors<op>();
    check_no_scale_of_result<op>();
    const matmul_refusals refused(good_product<op>());
    refused("relu", invalid, "activation is relu, must be none with i8",
            [](op& o) { o.activation = activation::relu; });
    refused("gelu", invalid, "activation is gelu, must be none with i8",
            [](op& o) { o.activation = activation::gelu; });
    refused("a bias", invalid, "bias is only for real numbers", [](op& o) { give(o.bias, 16); });
    refused("a bias that is too short", bounds, "bias has 0 elements, needs 16",
            [](op& o) { o.bias = ref<std::int32_t>(); });
    refused.accepted("small sizes", [](op& o) { o.m = 4, o.n = 3, o.k = 12; });
    refused.accepted("beta without C", [](op& o) { o.beta = 1; });
}

TEST_CASE("products of fp8 need multiples of 16")
{
    check_fp8<blas::matmul<float8_e4m3>>();
    check_fp8<blas::matmul<float8_e4m3, half>>();
    check_fp8<blas::matmul<float8_e4m3, float, float8_e5m2>>();
    check_fp8<blas::matmul<float8_e5m2, float>>();
    check_fp8<blas::matmul<float8_e5m2, bfloat16>>();
    check_fp8<blas::matmul<float8_e4m3, float8_e4m3>>();
    check_fp8<blas::matmul<float8_e5m2, float8_e5m2>>();
    check_fp8<blas::matmul<float8_e4m3, float8_e5m2, float8_e5m2>>();
}

TEST_CASE("a product overwrites D if it has no gaps, and beta is zero or C is another matrix")
{
    for (const auto storage : {order::column_major, order::row_major}) {
        auto o = good_product<blas::matmul<float>>(storage);
        CHECK(o.overwrites());
        o.beta = 1;
        CHECK_FALSE(o.overwrites());
        give(o.c, 256);
        CHECK(o.overwrites());
        o.ldd = 17;
        CHECK_FALSE(o.overwrites());
        o.ldd = 16;
        resize(o.d, 300);
        CHECK_FALSE(o.overwrites());
        resize(o.d, 512);
        o.batch = 2;
        o.stride_d = 256;
        CHECK(o.overwrites());
        o.beta = 0;
        o.c = {};
        CHECK(o.overwrites());
        o.stride_d = 255;
        CHECK_FALSE(o.overwrites());
        // The leading dimension is that of a row or of a column.
        o = good_product<blas::matmul<float>>(storage);
        o.m = 8;
        o.n = 32;
        o.ldd = storage == order::row_major ? 32 : 8;
        CHECK(o.overwrites());
        o.ldd = storage == order::row_major ? 8 : 32;
        CHECK_FALSE(o.overwrites());
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_matmul_messages
