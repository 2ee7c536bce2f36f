#ifndef COACCEL_OPS_BLAS_LEVEL3_SYMMETRIC_HPP
#define COACCEL_OPS_BLAS_LEVEL3_SYMMETRIC_HPP

#include <coaccel/ops/blas/level2.hpp>

// Products with a symmetric or Hermitian matrix, and updates of one. Of such a matrix only the triangle `uplo` is used.
namespace coaccel::blas {
namespace detail {

/// Checks symm and hemm: A is square, on the given side of B.
template <class Op>
error_code check_symmetric_product(const Op& o) noexcept
{
    const std::uint64_t order = o.side == side::left ? o.m : o.n;
    return first_error({
        check_value(Op::name, "side", o.side),
        check_value(Op::name, "uplo", o.uplo),
        check_sides(Op::name, o.m, o.n),
        check_matrix(Op::name, a_names, order, order, o.lda, o.a.size()),
        check_matrix(Op::name, b_names, o.m, o.n, o.ldb, o.b.size()),
        check_matrix(Op::name, c_names, o.m, o.n, o.ldc, o.c.size()),
    });
}

/// Whether the op writes every element of C, an m by n matrix, and reads none.
template <class Op>
bool overwrites_c(const Op& o) noexcept
{
    return o.beta == scalar<typename Op::value_type>(0) && (o.ldc == 0 || o.ldc == o.m) &&
           o.c.size() == coaccel::detail::times(o.m, o.n);
}

/// Checks the transpose of a rank update. `other` is the value that stands for the transposed factor.
inline error_code check_rank_transpose(std::string_view op, transpose t, transpose other) noexcept
{
    if (auto ec = check_value(op, "trans", t))
        return ec;
    if (t == transpose::no || t == other)
        return {};
    if (other == transpose::yes)
        return op_error(errc::invalid_argument, op, {"trans is conjugate, must be no or yes with complex elements"});
    return op_error(errc::invalid_argument, op, {"trans is yes, must be no or conjugate"});
}

/// Checks the fields that all rank updates have: op(A) is an n by k matrix, C an n by n matrix.
template <class Op>
error_code check_rank_update(const Op& o, transpose other) noexcept
{
    const bool plain = o.trans == transpose::no;
    const std::uint64_t rows = plain ? o.n : o.k;
    const std::uint64_t cols = plain ? o.k : o.n;
    error_code b{};
    if constexpr (requires { o.b; })
        b = check_matrix(Op::name, b_names, rows, cols, o.ldb, o.b.size());
    return first_error({
        check_value(Op::name, "uplo", o.uplo),
        check_rank_transpose(Op::name, o.trans, other),
        o.n == 0 ? is_zero(Op::name, "n") : error_code{},
        o.k == 0 ? is_zero(Op::name, "k") : error_code{},
        check_matrix(Op::name, a_names, rows, cols, o.lda, o.a.size()),
        b,
        check_matrix(Op::name, c_names, o.n, o.n, o.ldc, o.c.size()),
    });
}

/// A symmetric update accepts `conjugate` if the elements are real, where it means `yes`.
template <class Op>
error_code check_symmetric_update(const Op& o) noexcept
{
    const bool same = real<typename Op::value_type> && o.trans == transpose::conjugate;
    return check_rank_update(o, same ? transpose::conjugate : transpose::yes);
}

} // namespace detail

/// C = alpha * A * B + beta * C, or alpha * B * A + beta * C, with A a symmetric matrix and B and C m by n matrices.
///
/// C is not read when beta is zero; A and B are not read when alpha is zero.
template <dense_element T>
struct symm {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< The symmetric matrix: m by m on the left, n by n on the right.
    in<T> b;                             ///< The other factor: m by n.
    inout<T> c;                          ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;                 ///< Rows of B and C.
    std::uint64_t n = 0;                 ///< Columns of B and C.
    T alpha = 1;                         ///< The factor of the product.
    T beta = 0;                          ///< The factor of the previous C.
    blas::side side = blas::side::left;  ///< The side of A in the product.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is read.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;               ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;               ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_symmetric_product(*this); }
    bool overwrites() const noexcept { return detail::overwrites_c(*this); }

    COACCEL_PURE_OP(blas, symm, void, a, b, c, m, n, alpha, beta, side, uplo, lda, ldb, ldc)
};

/// C = alpha * A * B + beta * C, or alpha * B * A + beta * C, with A a Hermitian matrix and B and C m by n matrices.
///
/// The imaginary parts of the diagonal of A are not used. C is not read when beta is zero; A and B are not read when
/// alpha is zero.
template <complex_element T>
struct hemm {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< The Hermitian matrix: m by m on the left, n by n on the right.
    in<T> b;                             ///< The other factor: m by n.
    inout<T> c;                          ///< The result: m by n. Not read when beta is zero.
    std::uint64_t m = 0;                 ///< Rows of B and C.
    std::uint64_t n = 0;                 ///< Columns of B and C.
    T alpha = 1;                         ///< The factor of the product.
    T beta = 0;                          ///< The factor of the previous C.
    blas::side side = blas::side::left;  ///< The side of A in the product.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is read.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;               ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;               ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_symmetric_product(*this); }
    bool overwrites() const noexcept { return detail::overwrites_c(*this); }

    COACCEL_PURE_OP(blas, hemm, void, a, b, c, m, n, alpha, beta, side, uplo, lda, ldb, ldc)
};

/// C = alpha * op(A) * op(A)^T + beta * C, with op(A) an n by k matrix and C a symmetric matrix.
///
/// C is not read when beta is zero; A is not read when alpha is zero.
template <dense_element T>
struct syrk {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< The factor: n by k, or k by n when transposed.
    inout<T> c;                          ///< The result: n by n. Not read when beta is zero.
    std::uint64_t n = 0;                 ///< Rows of op(A) and C.
    std::uint64_t k = 0;                 ///< Columns of op(A).
    T alpha = 1;                         ///< The factor of the product.
    T beta = 0;                          ///< The factor of the previous C.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of C that is updated.
    transpose trans = transpose::no;     ///< Whether A is transposed; not `conjugate` with complex elements.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::uint64_t ldc = 0;               ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_symmetric_update(*this); }

    COACCEL_PURE_OP(blas, syrk, void, a, c, n, k, alpha, beta, uplo, trans, lda, ldc)
};

/// C = alpha * op(A) * op(A)^H + beta * C, with op(A) an n by k matrix and C a Hermitian matrix.
///
/// The imaginary parts of the diagonal of C must be zero, and are zero afterwards. C is not read when beta is zero; A
/// is not read when alpha is zero.
template <complex_element T>
struct herk {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< The factor: n by k, or k by n when transposed.
    inout<T> c;                          ///< The result: n by n. Not read when beta is zero.
    std::uint64_t n = 0;                 ///< Rows of op(A) and C.
    std::uint64_t k = 0;                 ///< Columns of op(A).
    real_part<T> alpha = 1;              ///< The factor of the product.
    real_part<T> beta = 0;               ///< The factor of the previous C.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of C that is updated.
    transpose trans = transpose::no;     ///< Whether A is transposed: `no` or `conjugate`.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::uint64_t ldc = 0;               ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_rank_update(*this, transpose::conjugate); }

    COACCEL_PURE_OP(blas, herk, void, a, c, n, k, alpha, beta, uplo, trans, lda, ldc)
};

/// C = alpha * op(A) * op(B)^T + alpha * op(B) * op(A)^T + beta * C, with op(A) and op(B) n by k matrices and C a
/// symmetric matrix.
///
/// C is not read when beta is zero; A and B are not read when alpha is zero.
template <dense_element T>
struct syr2k {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< One factor: n by k, or k by n when transposed.
    in<T> b;                             ///< The other factor: as A.
    inout<T> c;                          ///< The result: n by n. Not read when beta is zero.
    std::uint64_t n = 0;                 ///< Rows of op(A), op(B) and C.
    std::uint64_t k = 0;                 ///< Columns of op(A) and op(B).
    T alpha = 1;                         ///< The factor of the products.
    T beta = 0;                          ///< The factor of the previous C.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of C that is updated.
    transpose trans = transpose::no;     ///< Whether A and B are transposed; not `conjugate` with complex elements.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;               ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;               ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_symmetric_update(*this); }

    COACCEL_PURE_OP(blas, syr2k, void, a, b, c, n, k, alpha, beta, uplo, trans, lda, ldb, ldc)
};

/// C = alpha * op(A) * op(B)^H + conj(alpha) * op(B) * op(A)^H + beta * C, with op(A) and op(B) n by k matrices and C a
/// Hermitian matrix.
///
/// The imaginary parts of the diagonal of C must be zero, and are zero afterwards. C is not read when beta is zero; A
/// and B are not read when alpha is zero.
template <complex_element T>
struct her2k {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< One factor: n by k, or k by n when transposed.
    in<T> b;                             ///< The other factor: as A.
    inout<T> c;                          ///< The result: n by n. Not read when beta is zero.
    std::uint64_t n = 0;                 ///< Rows of op(A), op(B) and C.
    std::uint64_t k = 0;                 ///< Columns of op(A) and op(B).
    T alpha = 1;                         ///< The factor of the first product.
    real_part<T> beta = 0;               ///< The factor of the previous C.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of C that is updated.
    transpose trans = transpose::no;     ///< Whether A and B are transposed: `no` or `conjugate`.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;               ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;               ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_rank_update(*this, transpose::conjugate); }

    COACCEL_PURE_OP(blas, her2k, void, a, b, c, n, k, alpha, beta, uplo, trans, lda, ldb, ldc)
};

/// C = alpha * op(A) * op(B)^T + beta * C, with op(A) and op(B) n by k matrices, for products that are known to be
/// symmetric. Only one triangle of the product is computed.
///
/// C is not read when beta is zero; A and B are not read when alpha is zero.
template <dense_element T>
struct syrkx {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< The first factor: n by k, or k by n when transposed.
    in<T> b;                             ///< The second factor, which is transposed in the product: as A.
    inout<T> c;                          ///< The result: n by n. Not read when beta is zero.
    std::uint64_t n = 0;                 ///< Rows of op(A), op(B) and C.
    std::uint64_t k = 0;                 ///< Columns of op(A) and op(B).
    T alpha = 1;                         ///< The factor of the product.
    T beta = 0;                          ///< The factor of the previous C.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of C that is updated.
    transpose trans = transpose::no;     ///< Whether A and B are transposed; not `conjugate` with complex elements.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;               ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;               ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_symmetric_update(*this); }

    COACCEL_PURE_OP(blas, syrkx, void, a, b, c, n, k, alpha, beta, uplo, trans, lda, ldb, ldc)
};

namespace detail {

template <class T>
struct level3_symmetric {
    using type = type_list<symm<T>, syrk<T>, syr2k<T>, syrkx<T>>;
};

template <complex_element T>
struct level3_symmetric<T> {
    using type = type_list<symm<T>, syrk<T>, syr2k<T>, syrkx<T>, hemm<T>, herk<T>, her2k<T>>;
};

} // namespace detail

/// The ops of this header for one element type.
template <dense_element T>
using level3_symmetric_for = typename detail::level3_symmetric<T>::type;

} // namespace coaccel::blas

#endif
