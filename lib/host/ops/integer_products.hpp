#ifndef COACCEL_HOST_OPS_INTEGER_PRODUCTS_HPP
#define COACCEL_HOST_OPS_INTEGER_PRODUCTS_HPP

#include <coaccel/ops/blas/level3.hpp>

#include <cstdint>

namespace coaccel::host {

/// D = alpha * op(A) * op(B) + beta * C for i8 factors.
struct integer_product {
    blas::detail::gemm_shape shape;
    std::uint64_t lda, ldb, ldc, ldd;
    std::int32_t alpha, beta;

    /// Sums that exceed i32 wrap around. C may be D; it is not read if beta is zero.
    void run(const std::int8_t* a, const std::int8_t* b, const std::int32_t* c, std::int32_t* d) const;
};

} // namespace coaccel::host

#endif
