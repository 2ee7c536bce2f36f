#ifndef COACCEL_OPS_BLAS_HPP
#define COACCEL_OPS_BLAS_HPP

// All BLAS ops are column-major, as in Fortran BLAS and cuBLAS: element (i, j) of a matrix with leading dimension ld is
// at index i + j * ld.

#include <coaccel/ops/blas/level1.hpp>
#include <coaccel/ops/blas/level1_rotation.hpp>
#include <coaccel/ops/blas/level2.hpp>
#include <coaccel/ops/blas/level2_batched.hpp>
#include <coaccel/ops/blas/level2_symmetric.hpp>
#include <coaccel/ops/blas/level2_triangular.hpp>
#include <coaccel/ops/blas/level3.hpp>
#include <coaccel/ops/blas/level3_batched.hpp>
#include <coaccel/ops/blas/level3_elementwise.hpp>
#include <coaccel/ops/blas/level3_lists.hpp>
#include <coaccel/ops/blas/level3_symmetric.hpp>
#include <coaccel/ops/blas/level3_triangular.hpp>
#include <coaccel/ops/blas/lu_batched.hpp>
#include <coaccel/ops/blas/matmul.hpp>
#include <coaccel/ops/blas/qr_batched.hpp>

namespace coaccel::blas {
namespace detail {

template <element T>
consteval auto list_ops()
{
    using boost::mp11::mp_append;
    if constexpr (dense_element<T>)
        return mp_append<level1_for<T>, level1_rotation_for<T>, level2_for<T>, level2_symmetric_for<T>,
                         level2_triangular_for<T>, type_list<gemv_strided_batched<T>>, level3_for<T>,
                         level3_lists_for<T>, level3_symmetric_for<T>, level3_triangular_for<T>,
                         level3_elementwise_for<T>, level3_batched_for<T>, lu_batched_for<T>, qr_batched_for<T>>{};
    else if constexpr (gemm_element<T>)
        return mp_append<type_list<gemv_strided_batched<T>, gemm_ex<T>>, level3_for<T>, level3_lists_for<T>>{};
    else if constexpr (mixed_element<T>)
        return type_list<gemm_ex<T>>{};
    else
        return type_list<>{};
}

} // namespace detail

/// All ops of this library for one element type; an empty list if there are none.
template <element T>
using ops_for = boost::mp11::mp_append<decltype(detail::list_ops<T>()), matmul_for<T>>;

} // namespace coaccel::blas

#endif
