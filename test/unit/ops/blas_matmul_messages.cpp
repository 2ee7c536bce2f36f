#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace test_ops_blas_matmul_messages {

// The error messages of refused products: op, field and value.
namespace {

using namespace coaccel;
using blas::activation;
using blas::transpose;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

template <class T>
ref<T> part(std::uint64_t size, std::uint32_t slot, std::uint64_t offset = 0)
{
    return ref<T>::from_raw({1, 1, slot, 1, offset, size, dtype_v<T>});
}

/// Checks that the op is accepted, and how it is refused after each change.
template <class Op>
class matmul_refusals {
public:
    explicit matmul_refusals(const Op& good) : good_(good) { CHECK(good.check().message() == error_code().message()); }

    template <class Change>
    void operator()(errc code, const std::string& message, Change change) const
    {
        Op bad = good_;
        change(bad);
        const auto got = bad.check();
        CHECK(got.message() == std::string(Op::name) + ": " + message);
        CHECK_MESSAGE(got == code, message);
    }

    template <class Change>
    void accepted(Change change) const
    {
        Op other = good_;
        change(other);
        CHECK_FALSE(other.check());
    }

private:
    Op good_;
};

/// What all products refuse. A is 32 by 16 after the transposition, B 32 by 16, in matrices that are 32 by 16.
template <class Op>
void check_common(const matmul_refusals<Op>& refused)
{
    constexpr auto invalid = errc::invalid_argument;
    refused(invalid, "m is 0", [](Op& o) { o.m = 0; });
    refused(invalid, "n is 0", [](Op& o) { o.n = 0; });
    refused(invalid, "k is 0", [](Op& o) { o.k = 0; });
    refused(invalid, "batch is 0", [](Op& o) { o.batch = 0; });
    refused(invalid, "batch is 2147483648, must be at most 2147483647",
            [](Op& o) { o.batch = std::uint64_t(1) << 31; });
    refused(invalid, "activation is 3, which is not a blas::activation", [](Op& o) { o.activation = activation(3); });
    refused(errc::leading_dimension, "lda is 16, a has 32 rows", [](Op& o) { o.lda = 16; });
    refused(errc::leading_dimension, "ldb is 16, b has 32 rows", [](Op& o) { o.ldb = 16; });
    refused(errc::leading_dimension, "ldc is 8, c has 16 rows", [](Op& o) { o.ldc = 8; });
    refused(errc::out_of_bounds, "a has 512 elements, needs 752", [](Op& o) { o.lda = 48; });
    refused(errc::out_of_bounds, "b has 512 elements, needs 752", [](Op& o) { o.ldb = 48; });
    refused(errc::out_of_bounds, "c has 256 elements, needs 496", [](Op& o) { o.ldc = 32; });
    refused(errc::out_of_bounds, "a has 512 elements, needs 528", [](Op& o) { o.batch = 2, o.stride_a = 16; });
    refused(errc::leading_dimension, "stride_c is 240, one matrix of c has 256 elements",
            [](Op& o) { o.batch = 2, o.stride_c = 240; });
    refused(errc::out_of_bounds, "c has 256 elements, needs 512", [](Op& o) { o.batch = 2, o.stride_c = 256; });
    refused(errc::size_overflow, "the number of elements that a needs overflows 64 bits",
            [](Op& o) { o.lda = huge - 15; });
    refused(errc::size_overflow, "m * n * k overflows 64 bits: m is 4294967296, n is 4294967296, k is 4294967296",
            [](Op& o) { o.m = o.n = o.k = std::uint64_t(1) << 32; });
    // A stride of a single matrix has no meaning.
    refused.accepted([](Op& o) { o.stride_a = o.stride_b = o.stride_c = 1; });
    if constexpr (requires(Op& o) { o.math; })
        refused(invalid, "math is 3, which is not a blas::math", [](Op& o) { o.math = blas::math(3); });
    if constexpr (requires(Op& o) { o.bias; })
        refused(errc::out_of_bounds, "bias has 15 elements, needs 16",
                [](Op& o) { o.bias = part<typename decltype(o.bias)::value_type>(15, 3); });
}

template <class Op>
Op good_product()
{
    using T = typename Op::source_type;
    Op made{};
    made.a = part<T>(512, 0);
    made.b = part<typename decltype(made.b)::value_type>(512, 1);
    made.c = part<typename Op::value_type>(256, 2);
    made.m = made.n = 16;
    made.k = 32;
    if constexpr (requires { made.trans_a; })
        made.trans_a = transpose::yes;
    if constexpr (requires { made.bias; })
        made.bias = part<typename decltype(made.bias)::value_type>(16, 3);
    if constexpr (requires { made.scale_a; }) {
        made.scale_a = part<float>(1, 4);
        made.scale_b = part<float>(1, 5);
    }
    return made;
}

template <class Op>
void check_real()
{
    const matmul_refusals refused(good_product<Op>());
    check_common(refused);
    refused(errc::invalid_argument, "trans_a is 3, which is not a blas::transpose",
            [](Op& o) { o.trans_a = transpose(3); });
    refused(errc::invalid_argument, "trans_b is 9, which is not a blas::transpose",
            [](Op& o) { o.trans_b = transpose(9); });
    // Nothing has to be aligned.
    using T = typename Op::source_type;
    refused.accepted([](Op& o) {
        o.m = o.n = o.k = 3;
        o.lda = o.ldb = 5;
        o.a = part<T>(13, 0, 7);
    });
}

template <class Op>
void check_fp8()
{
    using T = typename Op::source_type;
    using R = typename Op::value_type;
    const matmul_refusals refused(good_product<Op>());
    check_common(refused);
    constexpr auto invalid = errc::invalid_argument;
    refused(invalid, "m is 15, must be a multiple of 16 with fp8", [](Op& o) { o.m = 15; });
    refused(invalid, "k is 24, must be a multiple of 16 with fp8", [](Op& o) { o.k = 24; });
    refused.accepted([](Op& o) { o.n = 3; });
    refused(errc::leading_dimension, "lda is 33, must be a multiple of 16 with fp8",
            [](Op& o) { o.lda = 33, o.a = part<T>(1024, 0); });
    refused(errc::leading_dimension, "ldb is 40, must be a multiple of 16 with fp8",
            [](Op& o) { o.ldb = 40, o.b = part<float8_e4m3>(1024, 1); });
    refused(errc::leading_dimension, "ldc is 24, must be a multiple of 16 with fp8",
            [](Op& o) { o.ldc = 24, o.c = part<R>(1024, 2); });
    refused(invalid, "a starts at element 8, must be a multiple of 16 with fp8",
            [](Op& o) { o.a = part<T>(512, 0, 8); });
    refused(invalid, "b starts at element 1, must be a multiple of 16 with fp8",
            [](Op& o) { o.b = part<float8_e4m3>(512, 1, 1); });
    refused(invalid, "c starts at element 4, must be a multiple of 16 with fp8",
            [](Op& o) { o.c = part<R>(256, 2, 4); });
    refused(invalid, "stride_a is 520, must be a multiple of 16 with fp8", [](Op& o) {
        o.batch = 2, o.stride_a = 520, o.stride_c = 256;
        o.a = part<T>(1040, 0);
        o.c = part<R>(512, 2);
    });
    refused(errc::out_of_bounds, "scale_a has 0 elements, needs 1", [](Op& o) { o.scale_a = part<float>(0, 4); });
    refused(errc::out_of_bounds, "scale_b has 0 elements, needs 1", [](Op& o) { o.scale_b = part<float>(0, 5); });
}

} // namespace

TEST_SUITE_BEGIN("messages of refused products");

TEST_CASE("matmul and matmul_bias")
{
    check_real<blas::matmul<float>>();
    check_real<blas::matmul<half, float>>();
    check_real<blas::matmul_bias<bfloat16>>();
    check_real<blas::matmul_bias<half, float>>();
}

TEST_CASE("matmul of i8 is of a transposed matrix, with sizes that are multiples of 4, without an activation")
{
    using op = blas::matmul<std::int8_t, std::int32_t>;
    const matmul_refusals refused(good_product<op>());
    check_common(refused);
    constexpr auto invalid = errc::invalid_argument;
    refused(invalid, "activation is relu, must be none with i8", [](op& o) { o.activation = activation::relu; });
    refused(invalid, "trans_a is no, A must be transposed with i8", [](op& o) { o.trans_a = transpose::no; });
    refused(invalid, "trans_b is yes, B must not be transposed with i8", [](op& o) { o.trans_b = transpose::yes; });
    refused(invalid, "m is 15, must be a multiple of 4 with i8", [](op& o) { o.m = 15; });
    refused(invalid, "k is 30, must be a multiple of 4 with i8", [](op& o) { o.k = 30; });
    refused(errc::leading_dimension, "ldc is 17, must be a multiple of 4 with i8",
            [](op& o) { o.ldc = 17, o.c = part<std::int32_t>(400, 2); });
    refused(invalid, "a starts at element 2, must be a multiple of 4 with i8",
            [](op& o) { o.a = part<std::int8_t>(512, 0, 2); });
    refused.accepted([](op& o) { o.m = 4, o.n = 3, o.k = 12; });
    refused.accepted([](op& o) { o.trans_a = transpose::conjugate; });
}

TEST_CASE("matmul_fp8 and matmul_fp8_bias need multiples of 16")
{
    check_fp8<blas::matmul_fp8<float8_e4m3, half>>();
    check_fp8<blas::matmul_fp8<float8_e5m2, float>>();
    check_fp8<blas::matmul_fp8_bias<float8_e4m3, float>>();
    check_fp8<blas::matmul_fp8_bias<float8_e5m2, bfloat16>>();
}

TEST_CASE("a product overwrites C if beta is zero and C has no gaps")
{
    auto o = good_product<blas::matmul_bias<float>>();
    CHECK(o.overwrites());
    o.beta = 1;
    CHECK_FALSE(o.overwrites());
    o.beta = 0;
    o.ldc = 17;
    CHECK_FALSE(o.overwrites());
    o.ldc = 16;
    o.c = part<float>(300, 2);
    CHECK_FALSE(o.overwrites());
    o.c = part<float>(512, 2);
    o.batch = 2;
    o.stride_c = 256;
    CHECK(o.overwrites());
}

TEST_SUITE_END();

} // namespace test_ops_blas_matmul_messages
