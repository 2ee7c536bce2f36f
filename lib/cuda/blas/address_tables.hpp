#ifndef COACCEL_CUDA_BLAS_ADDRESS_TABLES_HPP
#define COACCEL_CUDA_BLAS_ADDRESS_TABLES_HPP

#include "cuda/blas/address_kernel.hpp"
#include "cuda/prim/prim_workspace.hpp"

#include <coaccel/core/backend.hpp>

#include <initializer_list>

namespace coaccel::cuda {

/// Tables in device memory with the addresses of the matrices of a batch, which cuBLAS takes instead of a stride, and
/// behind them the pivots. The ops of a lane use the same memory one after another, in stream order.
class address_tables {
public:
    address_tables(backend& b, CUstream s) noexcept : backend_(b), stream_(s), memory_(b, s) {}

    /// Provides memory for all addresses and pivots of the next op.
    result<readiness> prepare(std::uint64_t addresses, std::uint64_t pivots);

    /// Puts the computation of one table for each sequence on the stream, and returns the first table; the others
    /// follow. Null: it failed, and `launched` returns the error. The first call in a context takes long. Called on one
    /// thread at a time, but any.
    void* const* fill(std::initializer_list<address_sequence> from, std::uint64_t count) noexcept;

    /// The same for addresses without an order, of which there are `count`.
    void* const* store(const address_list& from, std::uint32_t count) noexcept;

    /// Puts a copy of pivots on the stream, behind the tables, and returns it. Null: as above. cuBLAS does not check
    /// pivots, and would exchange rows with memory outside of the matrix, so those below 1 become 1 and those above
    /// `most` become `most`. Preconditions: `fill` has succeeded for this op.
    const std::int32_t* limit_pivots(const std::int32_t* from, std::uint64_t count, std::int32_t most) noexcept;

    /// Call this when the op is on the stream, or its launch has failed.
    error_code launched() noexcept;

    void destroy() noexcept { memory_.destroy(); }

private:
    backend& backend_;
    const CUstream stream_;
    prim_workspace memory_;
    address_kernel* kernel_ = nullptr;
    /// The number of addresses of the op that is launched.
    std::uint64_t filled_ = 0;
    error_code failure_;
};

} // namespace coaccel::cuda

#endif
