#ifndef COACCEL_OPS_BLAS_LEVEL3_HPP
#define COACCEL_OPS_BLAS_LEVEL3_HPP

#include <coaccel/ops/blas/batches.hpp>

namespace coaccel::blas {
namespace detail {

struct gemm_shape {
    std::uint64_t m, n, k;
    transpose trans_a, trans_b;

    constexpr std::uint64_t a_rows() const noexcept { return trans_a == transpose::no ? m : k; }
    constexpr std::uint64_t a_cols() const noexcept { return trans_a == transpose::no ? k : m; }
    constexpr std::uint64_t b_rows() const noexcept { return trans_b == transpose::no ? k : n; }
    constexpr std::uint64_t b_cols() const noexcept { return trans_b == transpose::no ? n : k; }

    error_code check(std::string_view op) const noexcept
    {
        if (auto ec = check_sides(op, m, n))
            return ec;
        if (k == 0)
            return is_zero(op, "k");
        if (auto ec = check_value(op, "trans_a", trans_a))
            return ec;
        if (auto ec = check_value(op, "trans_b", trans_b))
            return ec;
        using coaccel::detail::times;
        if (times(times(m, n), k))
            return {};
        return op_error(errc::size_overflow, op, {"m * n * k overflows 64 bits: m is ", m, ", n is ", n, ", k is ", k});
    }
};

/// Checks gemm and gemm_ex.
template <class Op>
error_code check_gemm(const Op& o) noexcept
{
    const auto s = o.shape();
    return first_error({
        s.check(Op::name),
        check_value(Op::name, "math", o.math),
        check_matrix(Op::name, a_names, s.a_rows(), s.a_cols(), o.lda, o.a.size()),
        check_matrix(Op::name, b_names, s.b_rows(), s.b_cols(), o.ldb, o.b.size()),
        check_matrix(Op::name, c_names, o.m, o.n, o.ldc, o.c.size()),
    });
}

/// With i8 elements cuBLAS needs columns that start at multiples of 4 bytes.
inline error_code check_words(std::string_view op, const matrix_names& names, std::uint64_t rows, std::uint64_t cols,
                              std::uint64_t ld, std::uint64_t offset) noexcept
{
    const std::uint64_t step = cols == 1 ? rows : effective_ld(ld, rows);
    if (step % 4 != 0)
        return op_error(errc::leading_dimension, op, {names.ld, " is ", step, ", must be a multiple of 4 with i8"});
    if (offset % 4 != 0)
        return op_error(errc::invalid_argument, op,
                        {names.matrix, " starts at element ", offset, ", must be a multiple of 4 with i8"});
    return {};
}

/// cuBLAS multiplies i8 elements only with this B.
inline error_code check_plain_b(std::string_view op, transpose trans_b) noexcept
{
    if (trans_b == transpose::no)
        return {};
    return op_error(
        errc::invalid_argument, op,
        {"trans_b is ", trans_b == transpose::yes ? "yes" : "conjugate", ", B must not be transposed with i8"});
}

/// Checks the operands of a batch of products. Preconditions: the shape is valid.
template <class Op>
error_code check_products(const Op& o) noexcept
{
    if (o.batch == 0)
        return is_zero(Op::name, "batch");
    const auto s = o.shape();
    return first_error({
        matrix_batch{s.a_rows(), s.a_cols(), o.lda, o.stride_a, o.batch, o.a.size()}.check(Op::name, a_batch),
        matrix_batch{s.b_rows(), s.b_cols(), o.ldb, o.stride_b, o.batch, o.b.size()}.check(Op::name, b_batch),
        matrix_batch{o.m, o.n, o.ldc, o.stride_c, o.batch, o.c.size()}.check_apart(Op::name, c_batch),
    });
}

/// Whether a batch of products writes every element of C and reads none.
template <class Op>
bool overwrites_products(const Op& o) noexcept
{
    return o.beta == decltype(o.beta)(0) && matrix_batch{o.m, o.n, o.ldc, o.stride_c, o.batch, o.c.size()}.fills();
}

} // namespace detail

/// C = alpha * op(A) * op(B) + beta * C, with op(A) m by k, op(B) k by n and C m by n.
///
/// Column-major. A leading dimension of zero means a packed matrix. C is not read when beta is zero; A and B are not
/// read when alpha is zero. 16-bit elements accumulate in f32.
template <gemm_element T>
struct gemm {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                                ///< The first factor: m by k, or k by m when transposed.
    in<T> b;                                ///< The second factor: k by n, or n by k when transposed.
    inout<T> c;                             ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;                    ///< Rows of op(A) and C.
    std::uint64_t n = 0;                    ///< Columns of op(B) and C.
    std::uint64_t k = 0;                    ///< Columns of op(A) and rows of op(B).
    scalar<T> alpha = 1;                    ///< The factor of the product.
    scalar<T> beta = 0;                     ///< The factor of the previous C.
    transpose trans_a = transpose::no;      ///< Whether A is transposed.
    transpose trans_b = transpose::no;      ///< Whether B is transposed.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;                  ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;                  ///< The distance between columns of C; zero: packed.
    blas::math math = blas::math::standard; ///< The precision in which products are computed.

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, trans_a, trans_b};
    } ///< The sides of the matrices.

    error_code check() const noexcept { return detail::check_gemm(*this); }

    bool overwrites() const noexcept
    {
        return beta == scalar<T>(0) && (ldc == 0 || ldc == m) && c.size() == coaccel::detail::times(m, n);
    }

    COACCEL_PURE_OP(blas, gemm, void, a, b, c, m, n, k, alpha, beta, trans_a, trans_b, lda, ldb, ldc, math)
};

/// As gemm, with a result of another type than the factors: f32 for 16-bit elements, i32 for i8.
///
/// With i8 elements, B must not be transposed, and the columns of A and B must start at multiples of 4 elements of
/// their buffers: `lda` and `ldb`, or the rows of a packed matrix, are multiples of 4. Sums of integers that exceed i32
/// wrap around.
template <mixed_element T>
struct gemm_ex {
    using value_type = T;
    using result_type = std::conditional_t<std::same_as<T, std::int8_t>, std::int32_t, float>; ///< The type of C.
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                                ///< The first factor: m by k, or k by m when transposed.
    in<T> b;                                ///< The second factor: k by n, or n by k when transposed.
    inout<result_type> c;                   ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;                    ///< Rows of op(A) and C.
    std::uint64_t n = 0;                    ///< Columns of op(B) and C.
    std::uint64_t k = 0;                    ///< Columns of op(A) and rows of op(B).
    result_type alpha = 1;                  ///< The factor of the product.
    result_type beta = 0;                   ///< The factor of the previous C.
    transpose trans_a = transpose::no;      ///< Whether A is transposed.
    transpose trans_b = transpose::no;      ///< Whether B is transposed.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;                  ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;                  ///< The distance between columns of C; zero: packed.
    blas::math math = blas::math::standard; ///< The precision in which products are computed.

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, trans_a, trans_b};
    } ///< The sides of the matrices.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_gemm(*this))
            return ec;
        if constexpr (std::same_as<T, std::int8_t>) {
            if (auto ec = detail::check_plain_b(name, trans_b))
                return ec;
            const auto s = shape();
            if (auto ec = detail::check_words(name, detail::a_names, s.a_rows(), s.a_cols(), lda, a.raw.offset))
                return ec;
            return detail::check_words(name, detail::b_names, s.b_rows(), s.b_cols(), ldb, b.raw.offset);
        }
        return {};
    }

    bool overwrites() const noexcept
    {
        return beta == 0 && (ldc == 0 || ldc == m) && c.size() == coaccel::detail::times(m, n);
    }

    COACCEL_PURE_OP(blas, gemm_ex, void, a, b, c, m, n, k, alpha, beta, trans_a, trans_b, lda, ldb, ldc, math)
};

/// `batch` products like gemm; matrix i of each operand starts i * stride elements after the first one.
///
/// The strides of A and B may be zero (one matrix for all products); the matrices of C must not overlap.
template <gemm_element T>
struct gemm_strided_batched {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                                ///< The first factor: m by k, or k by m when transposed.
    in<T> b;                                ///< The second factor: k by n, or n by k when transposed.
    inout<T> c;                             ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;                    ///< Rows of op(A) and C.
    std::uint64_t n = 0;                    ///< Columns of op(B) and C.
    std::uint64_t k = 0;                    ///< Columns of op(A) and rows of op(B).
    std::uint64_t batch = 0;                ///< The number of products.
    std::uint64_t stride_a = 0;             ///< The distance between matrices A; zero: one matrix for all products.
    std::uint64_t stride_b = 0;             ///< The distance between matrices B; zero: one matrix for all products.
    std::uint64_t stride_c = 0;             ///< The distance between matrices C; at least the extent of one.
    scalar<T> alpha = 1;                    ///< The factor of the product.
    scalar<T> beta = 0;                     ///< The factor of the previous C.
    transpose trans_a = transpose::no;      ///< Whether A is transposed.
    transpose trans_b = transpose::no;      ///< Whether B is transposed.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;                  ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;                  ///< The distance between columns of C; zero: packed.
    blas::math math = blas::math::standard; ///< The precision in which products are computed.

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, trans_a, trans_b};
    } ///< The sides of the matrices.

    error_code check() const noexcept
    {
        if (auto ec = shape().check(name))
            return ec;
        if (auto ec = detail::check_value(name, "math", math))
            return ec;
        return detail::check_products(*this);
    }

    bool overwrites() const noexcept { return detail::overwrites_products(*this); }

    COACCEL_PURE_OP(blas, gemm_strided_batched, void, a, b, c, m, n, k, batch, stride_a, stride_b, stride_c, alpha,
                    beta, trans_a, trans_b, lda, ldb, ldc, math)
};

/// The ops of this header for one element type.
template <gemm_element T>
using level3_for = type_list<gemm<T>, gemm_strided_batched<T>>;

} // namespace coaccel::blas

#endif
