#ifndef COACCEL_CUDA_BLAS_ADDRESS_KERNEL_HPP
#define COACCEL_CUDA_BLAS_ADDRESS_KERNEL_HPP

#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/result.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace coaccel::cuda {

class backend;

/// The addresses of one operand: `first`, `first + step`, and so on.
struct address_sequence {
    CUdeviceptr first = 0;
    std::uint64_t step = 0;
};

/// No op of cuBLAS takes more tables.
using address_sequences = std::array<address_sequence, 2>;

/// Addresses of operands that are in any buffers: three tables of at most 32.
using address_list = std::array<CUdeviceptr, 96>;

struct table_functions {
    /// Copies a list of addresses.
    CUfunction store_addresses = nullptr;
    /// Computes tables of addresses.
    CUfunction fill_addresses = nullptr;
    /// Copies pivots, each limited to 1 to n.
    CUfunction limit_pivots = nullptr;
};

/// The kernels that compute tables for cuBLAS, as PTX.
const char* address_kernel_source() noexcept;

/// The kernels that compute tables for cuBLAS, in one context. The addresses need not be in memory of the host, where
/// they would have to stay until a copy ends, and a graph can contain the launches.
class address_kernel {
public:
    address_kernel() = default;
    address_kernel(const address_kernel&) = delete;
    address_kernel& operator=(const address_kernel&) = delete;

    /// Loads them the first time, which takes long: on any thread, but then not on an executor. After a failure the
    /// next call tries again.
    result<table_functions> load(backend& b);

    /// As library_resources::destroy.
    void destroy() noexcept;

private:
    backend* backend_ = nullptr;
    std::mutex mutex_;
    CUmodule module_ = nullptr;
    table_functions functions_;
    std::atomic<bool> loaded_ = false;
};

/// Puts a launch on a stream: `tables` tables of `count` addresses, one after the other. Preconditions: count is not
/// zero.
error_code launch_addresses(backend& b, CUfunction kernel, CUdeviceptr to, std::uint64_t count,
                            const address_sequences& from, unsigned tables, CUstream s) noexcept;

/// Puts a launch on a stream: `to` gets the first `count` addresses.
error_code launch_store_addresses(backend& b, CUfunction kernel, CUdeviceptr to, std::uint32_t count,
                                  const address_list& from, CUstream s) noexcept;

/// Puts a launch on a stream: `to` gets `count` pivots, of which those below 1 are replaced by 1, and those above
/// `most` by `most`. Preconditions: count is not zero.
error_code launch_limit_pivots(backend& b, CUfunction kernel, CUdeviceptr to, CUdeviceptr from, std::uint64_t count,
                               std::int32_t most, CUstream s) noexcept;

} // namespace coaccel::cuda

#endif
