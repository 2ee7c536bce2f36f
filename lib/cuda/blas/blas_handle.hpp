#ifndef COACCEL_CUDA_BLAS_BLAS_HANDLE_HPP
#define COACCEL_CUDA_BLAS_BLAS_HANDLE_HPP

#include "context/library_resources.hpp"
#include "cuda/blas/address_tables.hpp"
#include "cuda/blas/cublas_api.hpp"
#include "cuda/blas/lt_handle.hpp"
#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/backend.hpp>

#include <boost/unordered/unordered_flat_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace coaccel::cuda {

class backend;

/// The arguments of a cuBLAS call.
struct blas_call {
    const cublas_api& api;
    cublasHandle_t handle;
    /// Device memory for one result. The next op of the lane reuses it, in stream order.
    void* result;
    /// Device memory of the requested size; null if none was requested.
    void* scratch;
    /// Has room for the requested numbers of addresses and pivots.
    address_tables& tables;
};

/// What a call needs before it is made.
struct call_needs {
    /// Equal for calls that are likely to run the same kernels.
    std::uint64_t kernels;
    /// Bytes of device memory.
    std::size_t scratch = 0;
    /// Addresses in all tables.
    std::uint64_t addresses = 0;
    /// Pivots that cuBLAS reads. An op with pivots has addresses, too.
    std::uint64_t pivots = 0;
    /// About the most commands that cuBLAS puts on the stream.
    std::size_t launches = 1;

    /// Whether the driver's queue may become full within the call, so that it blocks.
    bool many_launches() const noexcept;
};

/// cuBLAS on one lane: a handle with our own workspace.
///
/// The library is loaded and the handle created on the thread pool on first use. After a failure the next op tries
/// again; a handle that cuBLAS reports as broken is replaced for the next op.
class blas_handle final : public detail::library_resources {
public:
    static constexpr coaccel::library lib = coaccel::library::blas;
    using call = std::function<cublasStatus_t(const blas_call&)>;

    blas_handle(backend& b, CUstream s) noexcept : backend_(b), stream_(s), tables_(b, s), lt_(b, s) {}

    /// Prepares the handle and the scratch memory of one op. The first call that uses these kernels loads them, which
    /// may take long, so it is launched on the thread pool, as is every call with many launches; `copy` returns a call
    /// that owns its data.
    template <class Copy>
    result<readiness> prepare(const call_needs& needs, const Copy& copy)
    {
        if (launching_)
            return collect(needs.kernels);
        BOOST_OUTCOME_TRY(const auto ready, prepare(needs));
        if (ready != readiness::ready || (loaded_.contains(needs.kernels) && !needs.many_launches()))
            return ready;
        return launch_behind(copy());
    }

    /// Makes one call on a prepared handle and releases the scratch memory.
    template <class Call>
    error_code launch(const Call& direct)
    {
        return ended(direct(tools()));
    }

    /// cuBLASLt on this lane. It needs neither the handle nor the library of cuBLAS.
    lt_handle& lt() noexcept { return lt_; }

    /// Device address of the lane's last result.
    CUdeviceptr cell() const noexcept { return reinterpret_cast<CUdeviceptr>(workspace_); }

    void destroy() noexcept override;
    std::size_t count() const noexcept override { return lt_.count() + (handle_ ? 1 : 0); }

private:
    struct job;

    result<readiness> prepare(const call_needs& needs);
    result<readiness> make();
    result<readiness> take_scratch(std::size_t bytes);
    result<readiness> launch_behind(call c);
    result<readiness> collect(std::uint64_t kernels);
    error_code ended(cublasStatus_t status) noexcept;
    void drop_scratch() noexcept;
    error_code check(cublasStatus_t status) noexcept;

    blas_call tools() noexcept { return {*api_, handle_, workspace_, scratch_, tables_}; }

    backend& backend_;
    const CUstream stream_;
    const cublas_api* api_ = nullptr;
    cublasHandle_t handle_ = nullptr;
    bool broken_ = false;
    /// Starts with the cell for results.
    void* workspace_ = nullptr;
    std::size_t workspace_bytes_ = 0;
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    address_tables tables_;
    /// The job on the thread pool for the lane's one pending op.
    std::shared_ptr<job> job_;
    /// The job launches the op; otherwise it creates the handle.
    bool launching_ = false;
    boost::unordered_flat_set<std::uint64_t> loaded_;
    lt_handle lt_;
};

} // namespace coaccel::cuda

#endif
