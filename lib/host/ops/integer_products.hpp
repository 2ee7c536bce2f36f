#ifndef COACCEL_HOST_OPS_INTEGER_PRODUCTS_HPP
#define COACCEL_HOST_OPS_INTEGER_PRODUCTS_HPP

#include <coaccel/ops/blas/level3.hpp>

#include <cstdint>

namespace coaccel::host {

/// One product of i8 matrices. Op is gemm_ex or matmul.
struct integer_product {
    blas::detail::gemm_shape shape;
    std::uint64_t lda, ldb, ldc;
    std::int32_t alpha, beta;

    template <class Op>
    static integer_product of(const Op& op) noexcept
    {
        return {op.shape(), op.lda, op.ldb, op.ldc, op.alpha, op.beta};
    }

    /// Sums that exceed i32 wrap around.
    void run(const std::int8_t* a, const std::int8_t* b, std::int32_t* c) const;
};

} // namespace coaccel::host

#endif
