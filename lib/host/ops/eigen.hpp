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

} // namespace coaccel::host

#endif
