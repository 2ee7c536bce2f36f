#ifndef COACCEL_OPS_BLAS_MATMUL_HPP
#define COACCEL_OPS_BLAS_MATMUL_HPP

#include <coaccel/ops/blas/level3.hpp>

#include <cstddef>

// Products with a bias and an activation in one pass, which a GPU computes with cuBLASLt. The bias is a separate op,
// because an operand always names a buffer.
namespace coaccel::blas {

/// Element types of the factors of matmul_bias.
template <class T>
concept matmul_bias_element = std::same_as<T, float> || std::same_as<T, half> || std::same_as<T, bfloat16>;

/// Element types of the factors of matmul.
template <class T>
concept matmul_element = matmul_bias_element<T> || std::same_as<T, std::int8_t>;

/// Element types of the result, for factors of type T: i32 for i8, otherwise T or f32.
template <class R, class T>
concept matmul_result = (std::same_as<T, std::int8_t> && std::same_as<R, std::int32_t>) ||
                        (matmul_bias_element<T> && (std::same_as<R, T> || std::same_as<R, float>));

/// The 8-bit floating-point types.
template <class T>
concept float8_element = std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2>;

/// A function that is applied to each element of a result.
enum class activation : std::uint8_t {
    none, ///< x
    relu, ///< max(x, 0); unspecified for NaN
    /// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))), the approximation that cuBLASLt computes. It
    /// differs by less than 0.0005 from gelu with erf, which prim::bias_activation computes.
    gelu,
};
BOOST_DESCRIBE_ENUM(activation, none, relu, gelu)

constexpr bool valid(activation a) noexcept
{
    return a <= activation::gelu;
}

namespace detail {

/// What cuBLASLt needs of an operand: sizes, strides and the place in the buffer are multiples of `unit`.
struct alignment_rule {
    std::uint64_t unit;
    std::string_view type;

    error_code check(std::string_view op, std::string_view field, std::uint64_t value) const noexcept
    {
        if (value % unit == 0)
            return {};
        return op_error(errc::invalid_argument, op,
                        {field, " is ", value, ", must be a multiple of ", unit, " with ", type});
    }

    error_code check_ld(std::string_view op, const matrix_names& names, std::uint64_t rows, std::uint64_t cols,
                        std::uint64_t ld) const noexcept
    {
        const std::uint64_t step = cols == 1 ? rows : effective_ld(ld, rows);
        if (step % unit == 0)
            return {};
        return op_error(errc::leading_dimension, op,
                        {names.ld, " is ", step, ", must be a multiple of ", unit, " with ", type});
    }

    error_code check_place(std::string_view op, std::string_view field, const any_ref& at) const noexcept
    {
        if (at.offset % unit == 0)
            return {};
        return op_error(errc::invalid_argument, op,
                        {field, " starts at element ", at.offset, ", must be a multiple of ", unit, " with ", type});
    }
};

/// The rules of 8-bit types: A is transposed, and columns start at multiples of `unit` elements.
template <class Op>
error_code check_alignment(const Op& o, const alignment_rule& rule) noexcept
{
    const auto s = o.shape();
    const error_code strides =
        o.batch == 1
            ? error_code{}
            : first_error({rule.check(Op::name, "stride_a", o.stride_a), rule.check(Op::name, "stride_b", o.stride_b),
                           rule.check(Op::name, "stride_c", o.stride_c)});
    return first_error({
        rule.check(Op::name, "m", o.m),
        rule.check(Op::name, "k", o.k),
        rule.check_ld(Op::name, a_names, s.a_rows(), s.a_cols(), o.lda),
        rule.check_ld(Op::name, b_names, s.b_rows(), s.b_cols(), o.ldb),
        rule.check_ld(Op::name, c_names, o.m, o.n, o.ldc),
        rule.check_place(Op::name, "a", o.a.raw),
        rule.check_place(Op::name, "b", o.b.raw),
        rule.check_place(Op::name, "c", o.c.raw),
        strides,
    });
}

/// Checks that all ops of this header have in common.
template <class Op>
error_code check_matmul(const Op& o) noexcept
{
    if (auto ec = o.shape().check(Op::name))
        return ec;
    if (!valid(o.activation))
        return not_enumerated(Op::name, "activation", static_cast<unsigned>(o.activation), "blas::activation");
    if (auto ec = check_int(Op::name, "batch", o.batch))
        return ec;
    if (auto ec = check_products(o))
        return ec;
    if constexpr (requires { o.bias; })
        return coaccel::detail::require(Op::name, "bias", o.m, o.bias.size());
    return {};
}

/// Checks matmul_fp8 and matmul_fp8_bias.
template <class Op>
error_code check_matmul_fp8(const Op& o) noexcept
{
    if (auto ec = check_matmul(o))
        return ec;
    return first_error({
        coaccel::detail::require(Op::name, "scale_a", 1, o.scale_a.size()),
        coaccel::detail::require(Op::name, "scale_b", 1, o.scale_b.size()),
        check_alignment(o, {16, "fp8"}),
    });
}

} // namespace detail

/// C = activation(alpha * op(A) * op(B) + beta * C), with op(A) m by k, op(B) k by n and C m by n; or `batch` such
/// products.
///
/// Column-major. A leading dimension of zero means a packed matrix. Matrix i of a batch starts i * stride elements
/// after the first one. C is not read when beta is zero. 16-bit elements accumulate in f32, and the result is rounded
/// once.
///
/// With i8 elements there is no activation, A must be transposed and B not, and m, k, the leading dimensions, the
/// strides and the places of the operands in their buffers must be multiples of 4. Sums that exceed i32 wrap around.
template <matmul_element T, matmul_result<T> R = T>
struct matmul {
    using value_type = R;
    using source_type = T; ///< The type of A and B.
    using scalar_type =
        std::conditional_t<std::same_as<R, std::int32_t>, std::int32_t, float>; ///< That of the factors.
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                           ///< The first factor: m by k, or k by m when transposed.
    in<T> b;                           ///< The second factor: k by n, or n by k when transposed.
    inout<R> c;                        ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;               ///< Rows of op(A) and C.
    std::uint64_t n = 0;               ///< Columns of op(B) and C.
    std::uint64_t k = 0;               ///< Columns of op(A) and rows of op(B).
    std::uint64_t batch = 1;           ///< The number of products.
    std::uint64_t stride_a = 0;        ///< The distance between matrices A; zero: one matrix for all products.
    std::uint64_t stride_b = 0;        ///< The distance between matrices B; zero: one matrix for all products.
    std::uint64_t stride_c = 0;        ///< The distance between matrices C; at least the extent of one.
    scalar_type alpha = 1;             ///< The factor of the product.
    scalar_type beta = 0;              ///< The factor of the previous C.
    transpose trans_a = transpose::no; ///< Whether A is transposed.
    transpose trans_b = transpose::no; ///< Whether B is transposed.
    std::uint64_t lda = 0;             ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;             ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;             ///< The distance between columns of C; zero: packed.
    blas::activation activation = blas::activation::none; ///< The function of the elements of the result.
    blas::math math = blas::math::standard;               ///< The precision in which products are computed.

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, trans_a, trans_b};
    } ///< The sides of the matrices.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_value(name, "math", math))
            return ec;
        if (auto ec = detail::check_matmul(*this))
            return ec;
        if constexpr (std::same_as<T, std::int8_t>) {
            using detail::op_error;
            if (activation != blas::activation::none)
                return op_error(errc::invalid_argument, name,
                                {"activation is ", activation == blas::activation::relu ? "relu" : "gelu",
                                 ", must be none with i8"});
            if (trans_a == transpose::no)
                return op_error(errc::invalid_argument, name, {"trans_a is no, A must be transposed with i8"});
            if (trans_b != transpose::no)
                return op_error(errc::invalid_argument, name,
                                {"trans_b is ", trans_b == transpose::yes ? "yes" : "conjugate",
                                 ", B must not be transposed with i8"});
            return detail::check_alignment(*this, {4, "i8"});
        }
        return {};
    }

    bool overwrites() const noexcept { return detail::overwrites_products(*this); }

    COACCEL_PURE_OP(blas, matmul, void, a, b, c, m, n, k, batch, stride_a, stride_b, stride_c, alpha, beta, trans_a,
                    trans_b, lda, ldb, ldc, activation, math)
};

/// As matmul, with a bias: C = activation(alpha * op(A) * op(B) + beta * C + bias). Element i of the bias is added to
/// all elements of row i, in all matrices of a batch.
template <matmul_bias_element T, matmul_result<T> R = T>
struct matmul_bias {
    using value_type = R;
    using source_type = T; ///< The type of A and B.
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                           ///< The first factor: m by k, or k by m when transposed.
    in<T> b;                           ///< The second factor: k by n, or n by k when transposed.
    in<R> bias;                        ///< The bias: m elements.
    inout<R> c;                        ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;               ///< Rows of op(A) and C.
    std::uint64_t n = 0;               ///< Columns of op(B) and C.
    std::uint64_t k = 0;               ///< Columns of op(A) and rows of op(B).
    std::uint64_t batch = 1;           ///< The number of products.
    std::uint64_t stride_a = 0;        ///< The distance between matrices A; zero: one matrix for all products.
    std::uint64_t stride_b = 0;        ///< The distance between matrices B; zero: one matrix for all products.
    std::uint64_t stride_c = 0;        ///< The distance between matrices C; at least the extent of one.
    float alpha = 1;                   ///< The factor of the product.
    float beta = 0;                    ///< The factor of the previous C.
    transpose trans_a = transpose::no; ///< Whether A is transposed.
    transpose trans_b = transpose::no; ///< Whether B is transposed.
    std::uint64_t lda = 0;             ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;             ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;             ///< The distance between columns of C; zero: packed.
    blas::activation activation = blas::activation::none; ///< The function of the elements of the result.
    blas::math math = blas::math::standard;               ///< The precision in which products are computed.

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, trans_a, trans_b};
    } ///< The sides of the matrices.

    error_code check() const noexcept
    {
        return detail::first_error({detail::check_value(name, "math", math), detail::check_matmul(*this)});
    }

    bool overwrites() const noexcept { return detail::overwrites_products(*this); }

    COACCEL_PURE_OP(blas, matmul_bias, void, a, b, bias, c, m, n, k, batch, stride_a, stride_b, stride_c, alpha, beta,
                    trans_a, trans_b, lda, ldb, ldc, activation, math)
};

/// As matmul, with factors of fp8 and their scales: C = activation(alpha * scale_a * scale_b * transposed(A) * B +
/// beta * C). A has elements of e4m3 or e5m2, B of e4m3; A is always transposed and B is not.
///
/// m, k, the leading dimensions, the strides and the places of A, B and C in their buffers must be multiples of 16. On
/// a GPU it needs compute capability 8.9 or later.
template <float8_element T, matmul_bias_element R>
struct matmul_fp8 {
    using value_type = R;
    using source_type = T; ///< The type of A.
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                    ///< The first factor, which is transposed: k by m.
    in<float8_e4m3> b;          ///< The second factor: k by n.
    in<float> scale_a;          ///< The factor of all elements of A: 1 element.
    in<float> scale_b;          ///< The factor of all elements of B: 1 element.
    inout<R> c;                 ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;        ///< Columns of A and rows of C.
    std::uint64_t n = 0;        ///< Columns of B and C.
    std::uint64_t k = 0;        ///< Rows of A and B.
    std::uint64_t batch = 1;    ///< The number of products.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; zero: one matrix for all products.
    std::uint64_t stride_b = 0; ///< The distance between matrices B; zero: one matrix for all products.
    std::uint64_t stride_c = 0; ///< The distance between matrices C; at least the extent of one.
    float alpha = 1;            ///< The factor of the product.
    float beta = 0;             ///< The factor of the previous C.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;      ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;      ///< The distance between columns of C; zero: packed.
    blas::activation activation = blas::activation::none; ///< The function of the elements of the result.

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, transpose::yes, transpose::no};
    } ///< The sides of the matrices.

    error_code check() const noexcept { return detail::check_matmul_fp8(*this); }
    bool overwrites() const noexcept { return detail::overwrites_products(*this); }

    COACCEL_PURE_OP(blas, matmul_fp8, void, a, b, scale_a, scale_b, c, m, n, k, batch, stride_a, stride_b, stride_c,
                    alpha, beta, lda, ldb, ldc, activation)
};

/// As matmul_fp8, with a bias as in matmul_bias. With a result in f32, the bias is in bf16.
template <float8_element T, matmul_bias_element R>
struct matmul_fp8_bias {
    using value_type = R;
    using source_type = T;                                                     ///< The type of A.
    using bias_type = std::conditional_t<std::same_as<R, float>, bfloat16, R>; ///< The type of the bias.
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                    ///< The first factor, which is transposed: k by m.
    in<float8_e4m3> b;          ///< The second factor: k by n.
    in<float> scale_a;          ///< The factor of all elements of A: 1 element.
    in<float> scale_b;          ///< The factor of all elements of B: 1 element.
    in<bias_type> bias;         ///< The bias: m elements.
    inout<R> c;                 ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;        ///< Columns of A and rows of C.
    std::uint64_t n = 0;        ///< Columns of B and C.
    std::uint64_t k = 0;        ///< Rows of A and B.
    std::uint64_t batch = 1;    ///< The number of products.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; zero: one matrix for all products.
    std::uint64_t stride_b = 0; ///< The distance between matrices B; zero: one matrix for all products.
    std::uint64_t stride_c = 0; ///< The distance between matrices C; at least the extent of one.
    float alpha = 1;            ///< The factor of the product.
    float beta = 0;             ///< The factor of the previous C.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;      ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;      ///< The distance between columns of C; zero: packed.
    blas::activation activation = blas::activation::none; ///< The function of the elements of the result.

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, transpose::yes, transpose::no};
    } ///< The sides of the matrices.

    error_code check() const noexcept { return detail::check_matmul_fp8(*this); }
    bool overwrites() const noexcept { return detail::overwrites_products(*this); }

    COACCEL_PURE_OP(blas, matmul_fp8_bias, void, a, b, scale_a, scale_b, bias, c, m, n, k, batch, stride_a, stride_b,
                    stride_c, alpha, beta, lda, ldb, ldc, activation)
};

namespace detail {

template <element T>
consteval auto list_matmul()
{
    if constexpr (std::same_as<T, float>)
        return type_list<matmul<T>, matmul_bias<T>>{};
    else if constexpr (matmul_bias_element<T>)
        return type_list<matmul<T>, matmul<T, float>, matmul_bias<T>, matmul_bias<T, float>>{};
    else if constexpr (std::same_as<T, std::int8_t>)
        return type_list<matmul<T, std::int32_t>>{};
    else if constexpr (float8_element<T>)
        return type_list<matmul_fp8<T, half>, matmul_fp8<T, bfloat16>, matmul_fp8<T, float>, matmul_fp8_bias<T, half>,
                         matmul_fp8_bias<T, bfloat16>, matmul_fp8_bias<T, float>>{};
    else
        return type_list<>{};
}

/// Calls `f.operator()<T>()` for each type of A in an op of this header.
template <class F>
void for_each_matmul_element(const F& f)
{
    f.template operator()<float>();
    f.template operator()<half>();
    f.template operator()<bfloat16>();
    f.template operator()<std::int8_t>();
    f.template operator()<float8_e4m3>();
    f.template operator()<float8_e5m2>();
}

} // namespace detail

/// The ops of this header for one element type of A.
template <element T>
using matmul_for = decltype(detail::list_matmul<T>());

} // namespace coaccel::blas

#endif
