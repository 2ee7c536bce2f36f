#ifndef COACCEL_CUDA_BLAS_BLAS_HANDLE_HPP
#define COACCEL_CUDA_BLAS_BLAS_HANDLE_HPP

#include "cuda/blas/cublas_api.hpp"
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
    /// Zeroed device memory of the requested size; null if none was requested.
    void* scratch;
};

/// cuBLAS on one lane: a handle with our own workspace.
///
/// The library is loaded and the handle created on the thread pool on first use. After a failure the next op tries
/// again; a handle that cuBLAS reports as broken is replaced for the next op.
class blas_handle {
public:
    using call = std::function<cublasStatus_t(const blas_call&)>;

    blas_handle() noexcept = default;
    blas_handle(const blas_handle&) = delete;
    blas_handle& operator=(const blas_handle&) = delete;

    /// Prepares the handle and the scratch memory of one op. If pending, the backend is notified when it is worth
    /// another try.
    result<progress> prepare(backend& b, CUstream s, std::size_t scratch_bytes = 0);

    /// Makes one call on a prepared handle and releases the scratch memory. The first call of a kind loads kernels,
    /// which may take long, so it runs on the thread pool; `copy` returns a call that owns its data.
    template <class Call, class Copy>
    result<progress> run(std::uint64_t kind, const Call& direct, const Copy& copy)
    {
        if (job_)
            return collect(kind);
        if (!seen_.contains(kind))
            return run_behind(copy());
        return ended(direct(tools()));
    }

    /// Device address of the lane's last result.
    CUdeviceptr cell() const noexcept { return reinterpret_cast<CUdeviceptr>(workspace_); }

    /// Preconditions: the thread pool has stopped, the stream is idle and the context healthy. Not needed for a dead
    /// context.
    void destroy() noexcept;

private:
    struct job;

    result<progress> make();
    result<progress> take_scratch(std::size_t bytes);
    result<progress> run_behind(call c);
    result<progress> collect(std::uint64_t kind);
    result<progress> ended(cublasStatus_t status) noexcept;
    void drop_scratch() noexcept;
    error_code check(cublasStatus_t status) noexcept;

    blas_call tools() const noexcept { return {*api_, handle_, workspace_, scratch_}; }

    backend* backend_ = nullptr;
    CUstream stream_ = nullptr;
    const cublas_api* api_ = nullptr;
    cublasHandle_t handle_ = nullptr;
    bool broken_ = false;
    /// Starts with the cell for results.
    void* workspace_ = nullptr;
    std::size_t workspace_bytes_ = 0;
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    /// The job on the thread pool for the lane's one pending op.
    std::shared_ptr<job> job_;
    boost::unordered_flat_set<std::uint64_t> seen_;
};

} // namespace coaccel::cuda

#endif
