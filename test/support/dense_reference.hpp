#ifndef COACCEL_TEST_SUPPORT_DENSE_REFERENCE_HPP
#define COACCEL_TEST_SUPPORT_DENSE_REFERENCE_HPP

#include "support/dense.hpp"

// Elements of matrices that an op derives from those in memory, for references that follow the definitions of BLAS.
namespace test {

using coaccel::blas::diag;
using coaccel::blas::side;
using coaccel::blas::transpose;
using coaccel::blas::uplo;

inline constexpr transpose every_transpose[] = {transpose::no, transpose::yes, transpose::conjugate};
inline constexpr uplo every_uplo[] = {uplo::lower, uplo::upper};
inline constexpr diag every_diag[] = {diag::non_unit, diag::unit};
inline constexpr side every_side[] = {side::left, side::right};

/// Factors that are exact in every element type.
struct scale {
    double alpha, beta;
};

inline constexpr scale every_scale[] = {{1, 0}, {-0.5, 0}, {1, 1}, {2, -0.25}, {0, 1}, {0, 0}, {0, 2}};

inline bool in_triangle(uplo u, std::size_t i, std::size_t j)
{
    return u == uplo::lower ? i >= j : i <= j;
}

/// op(A)(i, j)
template <class T>
wide<T> taken(const matrix<T>& a, transpose t, std::size_t i, std::size_t j)
{
    if (t == transpose::no)
        return a.at(i, j);
    return t == transpose::yes ? a.at(j, i) : conjugate(a.at(j, i));
}

/// The element of the symmetric matrix of which one triangle is given.
template <class T>
wide<T> symmetric(const matrix<T>& a, uplo u, std::size_t i, std::size_t j)
{
    return in_triangle(u, i, j) ? a.at(i, j) : a.at(j, i);
}

/// The element of the Hermitian matrix of which one triangle is given.
template <class T>
wide<T> hermitian(const matrix<T>& a, uplo u, std::size_t i, std::size_t j)
{
    if (i == j)
        return std::real(a.at(i, j));
    return in_triangle(u, i, j) ? a.at(i, j) : conjugate(a.at(j, i));
}

/// The element of op(A), with A a triangular matrix.
template <class T>
wide<T> triangular(const matrix<T>& a, uplo u, transpose t, diag d, std::size_t i, std::size_t j)
{
    if (i == j && d == diag::unit)
        return 1;
    return in_triangle(u, t == transpose::no ? i : j, t == transpose::no ? j : i) ? taken(a, t, i, j) : 0;
}

/// A matrix with random elements, or with poison values only if it is multiplied by zero: it must not be read then.
template <class T>
matrix<T> operand(std::size_t rows, std::size_t cols, std::size_t extra, double by, engine& random)
{
    return by == 0 ? matrix<T>(rows, cols, extra) : matrix<T>(rows, cols, extra, random);
}

template <class T>
vector<T> vector_operand(std::size_t n, std::int64_t inc, double by, engine& random)
{
    return by == 0 ? vector<T>(n, inc) : vector<T>(n, inc, random);
}

/// As `operand`, with poison values in the triangle that must not be read.
template <class T>
matrix<T> one_triangle(std::size_t n, uplo u, std::size_t extra, double by, engine& random)
{
    auto made = operand<T>(n, n, extra, by, random);
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < n; ++i)
            if (!in_triangle(u, i, j))
                made(i, j) = poison<T>();
    return made;
}

/// A triangular matrix with which equations are well conditioned. With a unit diagonal, its diagonal is poisoned.
template <class T>
matrix<T> well_conditioned(std::size_t n, uplo u, diag d, std::size_t extra, double by, engine& random)
{
    auto made = one_triangle<T>(n, u, extra, by, random);
    for (std::size_t j = 0; j < n && by != 0; ++j)
        for (std::size_t i = 0; i < n; ++i)
            if (i != j && in_triangle(u, i, j))
                made(i, j) = T(wide<T>(made.at(i, j) / static_cast<double>(n)));
            else if (i == j)
                made(i, j) = d == diag::unit ? poison<T>() : T(wide<T>(2.0 + made.at(i, j)));
    return made;
}

/// beta * c(i, j), if there is a beta.
template <class T>
expectation_of<wide<T>> kept(const matrix<T>& c, const wide<T>& beta, std::size_t i, std::size_t j)
{
    expectation_of<wide<T>> e;
    if (beta != 0.0)
        e.add(beta * c.at(i, j));
    return e;
}

} // namespace test

#endif
