#ifndef COACCEL_HOST_OPS_EIGEN_HPP
#define COACCEL_HOST_OPS_EIGEN_HPP

#include <coaccel/ops/blas/common.hpp>

#include <Eigen/Core>

#include <cstdint>
#include <cstdlib>

// BLAS operands as Eigen maps.
namespace coaccel::host {

using Eigen::Dynamic;
using Eigen::Index;

template <class T>
using vector_map =
    Eigen::Map<std::conditional_t<std::is_const_v<T>, const Eigen::Matrix<std::remove_const_t<T>, Dynamic, 1>,
                                  Eigen::Matrix<T, Dynamic, 1>>,
               0, Eigen::InnerStride<>>;

template <class T>
using matrix_map =
    Eigen::Map<std::conditional_t<std::is_const_v<T>, const Eigen::Matrix<std::remove_const_t<T>, Dynamic, Dynamic>,
                                  Eigen::Matrix<T, Dynamic, Dynamic>>,
               0, Eigen::OuterStride<>>;

// The increment of a one-element vector and the leading dimension of a one-column matrix are irrelevant, and may exceed
// Index.
template <class T>
vector_map<T> vector(T* data, std::uint64_t n, std::int64_t inc)
{
    return {data, static_cast<Index>(n), Eigen::InnerStride<>(n == 1 ? 1 : std::abs(inc))};
}

template <class T>
matrix_map<T> matrix(T* data, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld)
{
    return {data, static_cast<Index>(rows), static_cast<Index>(cols),
            Eigen::OuterStride<>(static_cast<Index>(ld == 0 || cols == 1 ? rows : ld))};
}

template <class T>
using dense = Eigen::Matrix<T, Dynamic, Dynamic>;

// A contiguous copy in logical order. Its cost is negligible next to a matrix, and Eigen's kernels require contiguous
// vectors.
template <class T>
Eigen::Matrix<T, Dynamic, 1> packed(const T* data, std::uint64_t n, std::int64_t inc)
{
    const auto x = vector(data, n, inc);
    if (inc < 0)
        return x.reverse();
    return x;
}

/// A copy in another type.
template <class To, class T>
dense<To> converted(const T* data, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld)
{
    dense<To> wide(static_cast<Index>(rows), static_cast<Index>(cols));
    const std::uint64_t step = ld == 0 ? rows : ld;
    for (std::uint64_t j = 0; j < cols; ++j)
        for (std::uint64_t i = 0; i < rows; ++i)
            wide(static_cast<Index>(i), static_cast<Index>(j)) = static_cast<To>(data[i + j * step]);
    return wide;
}

/// The columns of one triangle of an n by n matrix.
struct triangle_columns {
    blas::uplo uplo;
    Index n;

    /// The elements of column j in the triangle.
    template <class Matrix>
    auto whole(Matrix& a, Index j) const
    {
        return uplo == blas::uplo::lower ? a.col(j).segment(j, n - j) : a.col(j).segment(0, j + 1);
    }

    /// As `whole`, without the diagonal.
    template <class Matrix>
    auto strict(Matrix& a, Index j) const
    {
        return a.col(j).segment(first(j), count(j));
    }

    /// The elements of a vector that belong to the rows of `strict`.
    template <class Vector>
    auto rows(Vector& x, Index j) const
    {
        return x.segment(first(j), count(j));
    }

private:
    Index first(Index j) const { return uplo == blas::uplo::lower ? j + 1 : 0; }
    Index count(Index j) const { return uplo == blas::uplo::lower ? n - j - 1 : j; }
};

/// y = beta * y + product. y is not read if beta is zero.
template <class T>
void add_to(T* data, std::uint64_t n, std::int64_t inc, T beta, Eigen::Matrix<T, Dynamic, 1>& product)
{
    if (inc < 0)
        product.reverseInPlace();
    auto y = vector(data, n, inc);
    if (beta == T(0))
        y = product;
    else
        y = beta * y + product;
}

/// Calls `f` with op(a).
template <class Matrix, class F>
void with_op(blas::transpose t, const Matrix& a, const F& f)
{
    if (t == blas::transpose::no)
        f(a);
    else if (t == blas::transpose::yes)
        f(a.transpose());
    else
        f(a.adjoint());
}

} // namespace coaccel::host

#endif
