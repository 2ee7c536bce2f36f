#ifndef COACCEL_TEST_SUPPORT_BATCHES_HPP
#define COACCEL_TEST_SUPPORT_BATCHES_HPP

#include "support/dense.hpp"

#include <algorithm>
#include <string>
#include <vector>

// Batches of matrices in one buffer, with poison values wherever they have no element, and matrices of wide numbers for
// references.
namespace test {

/// A packed matrix in the type of references.
template <class T>
struct reference {
    reference(std::size_t r, std::size_t c) : rows(r), cols(c), data(r * c) {}

    static reference identity(std::size_t n)
    {
        reference made(n, n);
        for (std::size_t i = 0; i < n; ++i)
            made(i, i) = 1;
        return made;
    }

    wide<T>& operator()(std::size_t i, std::size_t j) { return data[i + j * rows]; }
    const wide<T>& operator()(std::size_t i, std::size_t j) const { return data[i + j * rows]; }

    /// The Frobenius norm.
    double norm() const
    {
        double sum = 0;
        for (const auto& x : data)
            sum += std::norm(x);
        return std::sqrt(sum);
    }

    reference adjoint() const
    {
        reference made(cols, rows);
        for (std::size_t j = 0; j < cols; ++j)
            for (std::size_t i = 0; i < rows; ++i)
                made(j, i) = conjugate((*this)(i, j));
        return made;
    }

    friend reference operator*(const reference& a, const reference& b)
    {
        reference made(a.rows, b.cols);
        for (std::size_t j = 0; j < b.cols; ++j)
            for (std::size_t p = 0; p < a.cols; ++p)
                for (std::size_t i = 0; i < a.rows; ++i)
                    made(i, j) += a(i, p) * b(p, j);
        return made;
    }

    friend reference operator-(reference a, const reference& b)
    {
        for (std::size_t i = 0; i < a.data.size(); ++i)
            a.data[i] -= b.data[i];
        return a;
    }

    std::size_t rows;
    std::size_t cols;
    std::vector<wide<T>> data;
};

/// How far the matrices of a batch, and their columns, are apart.
struct batch_gaps {
    std::size_t ld, stride;
};

inline constexpr batch_gaps every_gap[] = {{0, 0}, {3, 5}};
inline constexpr std::size_t every_batch[] = {1, 2, 7};

template <class T>
struct batch {
    batch(std::size_t r, std::size_t c, std::size_t n, batch_gaps gaps)
        : rows(r), cols(c), count(n), ld(r + gaps.ld), one((c - 1) * ld + r), stride(one + gaps.stride),
          extent((n - 1) * stride + one), data(extent + 2 * margin, poison<T>())
    {}

    batch(std::size_t r, std::size_t c, std::size_t n, batch_gaps gaps, engine& random) : batch(r, c, n, gaps)
    {
        for (std::size_t m = 0; m < count; ++m)
            for (std::size_t j = 0; j < cols; ++j)
                for (std::size_t i = 0; i < rows; ++i)
                    (*this)(m, i, j) = random_element<T>(random);
    }

    std::size_t place(std::size_t m, std::size_t i, std::size_t j) const { return margin + m * stride + i + j * ld; }
    T& operator()(std::size_t m, std::size_t i, std::size_t j) { return data[place(m, i, j)]; }
    coaccel::ref<T> in(const coaccel::buffer<T>& b) const { return b.subspan(margin, extent); }

    /// Zero means "packed" to an op.
    std::uint64_t ld_field() const { return ld == rows ? 0 : ld; }

    /// The stride of a single matrix has no meaning.
    std::uint64_t stride_field() const { return count == 1 ? std::uint64_t(-1) : stride; }

    /// Matrix m of a buffer with this layout.
    reference<T> matrix_of(const std::vector<T>& of, std::size_t m) const
    {
        reference<T> made(rows, cols);
        for (std::size_t j = 0; j < cols; ++j)
            for (std::size_t i = 0; i < rows; ++i)
                made(i, j) = number(of[place(m, i, j)]);
        return made;
    }

    reference<T> operator[](std::size_t m) const { return matrix_of(data, m); }

    /// Whether nothing was written between the matrices and their columns.
    bool gaps_remain(const std::vector<T>& got) const
    {
        std::vector<bool> is_element(data.size());
        for (std::size_t m = 0; m < count; ++m)
            for (std::size_t j = 0; j < cols; ++j)
                for (std::size_t i = 0; i < rows; ++i)
                    is_element[place(m, i, j)] = true;
        if (got.size() != data.size())
            return false;
        for (std::size_t p = 0; p < data.size(); ++p)
            if (!is_element[p] && !same_bits(got[p], data[p]))
                return false;
        return true;
    }

    std::size_t rows;
    std::size_t cols;
    std::size_t count;
    std::size_t ld;
    /// From the first to the last element of one matrix.
    std::size_t one;
    std::size_t stride;
    std::size_t extent;
    std::vector<T> data;
};

/// One rounding to T, times `terms`, times a small factor for the constants in the bounds of algorithms.
template <class T>
double tolerance(std::size_t terms)
{
    return 4 * static_cast<double>(terms + 3) * unit_roundoff<T>();
}

/// H(k) * x for the columns of x, with the reflections of geqrf_batched, which are below the diagonal of `a`.
template <class T>
void reflect(const reference<T>& a, std::size_t k, const wide<T>& tau, reference<T>& x)
{
    const auto v = [&](std::size_t i) { return i == k ? wide<T>(1) : a(i, k); };
    for (std::size_t j = 0; j < x.cols; ++j) {
        wide<T> sum{};
        for (std::size_t i = k; i < x.rows; ++i)
            sum += conjugate(v(i)) * x(i, j);
        for (std::size_t i = k; i < x.rows; ++i)
            x(i, j) -= tau * v(i) * sum;
    }
}

/// Q * x, with the reflections from the last to the first.
template <class T>
reference<T> times_q(const reference<T>& a, const T* tau, reference<T> x)
{
    for (std::size_t k = std::min(a.rows, a.cols); k-- > 0;)
        reflect(a, k, number(tau[k]), x);
    return x;
}

template <class T>
reference<T> upper_of(const reference<T>& a)
{
    reference<T> made(a.rows, a.cols);
    for (std::size_t j = 0; j < a.cols; ++j)
        for (std::size_t i = 0; i <= j && i < a.rows; ++i)
            made(i, j) = a(i, j);
    return made;
}

} // namespace test

#endif
