#ifndef COACCEL_HOST_OPS_PRODUCTS_HPP
#define COACCEL_HOST_OPS_PRODUCTS_HPP

#include "host/ops/eigen.hpp"

// Matrix products, compiled once for each element type, because their kernels take long to compile.
namespace coaccel::host {

template <class T>
matrix_map<const T> whole(const dense<T>& m)
{
    return matrix(m.data(), static_cast<std::uint64_t>(m.rows()), static_cast<std::uint64_t>(m.cols()), 0);
}

template <class T>
matrix_map<T> whole(dense<T>& m)
{
    return matrix(m.data(), static_cast<std::uint64_t>(m.rows()), static_cast<std::uint64_t>(m.cols()), 0);
}

/// c = alpha * op(a) * op(b) + beta * c. An operand multiplied by zero is not read, because it may be uninitialized.
template <blas::dense_element T>
void multiply(blas::transpose ta, blas::transpose tb, const matrix_map<const T>& a, const matrix_map<const T>& b,
              matrix_map<T> c, T alpha, T beta);

} // namespace coaccel::host

#endif
