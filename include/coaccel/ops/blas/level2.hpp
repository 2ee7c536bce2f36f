#ifndef COACCEL_OPS_BLAS_LEVEL2_HPP
#define COACCEL_OPS_BLAS_LEVEL2_HPP

#include <coaccel/ops/blas/level1.hpp>

namespace coaccel::blas {
namespace detail {

/// A leading dimension of zero means a packed matrix: the number of rows.
constexpr std::uint64_t effective_ld(std::uint64_t ld, std::uint64_t rows) noexcept
{
    return ld == 0 ? rows : ld;
}

/// The names of a matrix and its leading dimension in error messages.
struct matrix_names {
    std::string_view matrix, ld;
    /// What a leading dimension is at least as large as the number of.
    std::string_view lines = "rows";
};

inline constexpr matrix_names a_names{"a", "lda"};
inline constexpr matrix_names b_names{"b", "ldb"};
inline constexpr matrix_names c_names{"c", "ldc"};

inline error_code check_ld(std::string_view op, const matrix_names& names, std::uint64_t rows,
                           std::uint64_t ld) noexcept
{
    if (ld == 0 || ld >= rows)
        return {};
    return op_error(errc::leading_dimension, op,
                    {names.ld, " is ", ld, ", ", names.matrix, " has ", rows, " ", names.lines});
}

/// Preconditions: rows and cols are not zero.
inline error_code check_matrix(std::string_view op, const matrix_names& names, std::uint64_t rows, std::uint64_t cols,
                               std::uint64_t ld, std::uint64_t available) noexcept
{
    if (auto ec = check_ld(op, names, rows, ld))
        return ec;
    return coaccel::detail::require(op, names.matrix,
                                    coaccel::detail::matrix_extent(rows, cols, effective_ld(ld, rows)), available);
}

inline error_code check_sides(std::string_view op, std::uint64_t m, std::uint64_t n) noexcept
{
    if (m == 0)
        return is_zero(op, "m");
    return n == 0 ? is_zero(op, "n") : error_code{};
}

/// Checks ger, geru and gerc.
template <class Op>
error_code check_rank_one(const Op& o) noexcept
{
    return first_error({
        check_sides(Op::name, o.m, o.n),
        check_matrix(Op::name, a_names, o.m, o.n, o.lda, o.a.size()),
        check_vector(Op::name, x_names, o.m, o.incx, o.x.size()),
        check_vector(Op::name, y_names, o.n, o.incy, o.y.size()),
    });
}

} // namespace detail

/// y = alpha * op(A) * x + beta * y, with A an m by n matrix.
template <dense_element T>
struct gemv {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                         ///< The matrix.
    in<T> x;                         ///< The vector to multiply: n elements, or m when A is transposed.
    inout<T> y;                      ///< The result: m elements, or n when A is transposed. Not read when beta is zero.
    std::uint64_t m = 0;             ///< Rows of A.
    std::uint64_t n = 0;             ///< Columns of A.
    T alpha = 1;                     ///< The factor of the product.
    T beta = 0;                      ///< The factor of the previous y.
    transpose trans = transpose::no; ///< Whether A is transposed.
    std::uint64_t lda = 0;           ///< The distance between columns of A; zero: m, packed.
    std::int64_t incx = 1;           ///< The distance between elements of x; not zero.
    std::int64_t incy = 1;           ///< The distance between elements of y; not zero.

    constexpr std::uint64_t x_size() const noexcept { return trans == transpose::no ? n : m; } ///< Elements of x.
    constexpr std::uint64_t y_size() const noexcept { return trans == transpose::no ? m : n; } ///< Elements of y.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_value(name, "trans", trans))
            return ec;
        if (auto ec = detail::check_sides(name, m, n))
            return ec;
        if (auto ec = detail::check_matrix(name, detail::a_names, m, n, lda, a.size()))
            return ec;
        if (auto ec = detail::check_vector(name, detail::x_names, x_size(), incx, x.size()))
            return ec;
        return detail::check_vector(name, detail::y_names, y_size(), incy, y.size());
    }

    bool overwrites() const noexcept
    {
        return beta == T(0) && coaccel::detail::step_of(incy) == 1 && y.size() == y_size();
    }

    COACCEL_PURE_OP(blas, gemv, void, a, x, y, m, n, alpha, beta, trans, lda, incx, incy)
};

/// A = alpha * x * y^T + A, with A an m by n matrix.
template <real T>
struct ger {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> x;               ///< m elements.
    in<T> y;               ///< n elements.
    inout<T> a;            ///< The matrix to which the product is added.
    std::uint64_t m = 0;   ///< Rows of A.
    std::uint64_t n = 0;   ///< Columns of A.
    T alpha = 1;           ///< The factor of the product.
    std::uint64_t lda = 0; ///< The distance between columns of A; zero: m, packed.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_rank_one(*this); }

    COACCEL_PURE_OP(blas, ger, void, x, y, a, m, n, alpha, lda, incx, incy)
};

/// A = alpha * x * y^T + A, with A an m by n matrix.
template <complex_element T>
struct geru {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> x;               ///< m elements.
    in<T> y;               ///< n elements.
    inout<T> a;            ///< The matrix to which the product is added.
    std::uint64_t m = 0;   ///< Rows of A.
    std::uint64_t n = 0;   ///< Columns of A.
    T alpha = 1;           ///< The factor of the product.
    std::uint64_t lda = 0; ///< The distance between columns of A; zero: m, packed.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_rank_one(*this); }

    COACCEL_PURE_OP(blas, geru, void, x, y, a, m, n, alpha, lda, incx, incy)
};

/// A = alpha * x * y^H + A, with A an m by n matrix.
template <complex_element T>
struct gerc {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> x;               ///< m elements.
    in<T> y;               ///< n elements, whose conjugates are used.
    inout<T> a;            ///< The matrix to which the product is added.
    std::uint64_t m = 0;   ///< Rows of A.
    std::uint64_t n = 0;   ///< Columns of A.
    T alpha = 1;           ///< The factor of the product.
    std::uint64_t lda = 0; ///< The distance between columns of A; zero: m, packed.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_rank_one(*this); }

    COACCEL_PURE_OP(blas, gerc, void, x, y, a, m, n, alpha, lda, incx, incy)
};

namespace detail {

template <class T>
struct level2 {
    using type = type_list<gemv<T>, ger<T>>;
};

template <complex_element T>
struct level2<T> {
    using type = type_list<gemv<T>, geru<T>, gerc<T>>;
};

} // namespace detail

/// The ops of this header for one element type.
template <dense_element T>
using level2_for = typename detail::level2<T>::type;

} // namespace coaccel::blas

#endif
