#ifndef COACCEL_CUDA_BLAS_HANDLE_HPP
#define COACCEL_CUDA_BLAS_HANDLE_HPP

#include "cuda/load/cublas_api.hpp"
#include "cuda/load/driver_api.hpp"

#include <coaccel/core/backend.hpp>

#include <boost/unordered/unordered_flat_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace coaccel::cuda {

class backend;

/// What a call of cuBLAS has to work with.
struct blas_call {
    const cublas_api& api;
    cublasHandle_t handle;
    /// Device memory for one result. The next op of the lane uses it too, in the lane's order.
    void* result;
    /// Device memory of the size that was asked for; null when none was.
    /// Zeroed.
    void* scratch;
};

/// cuBLAS on one lane: a handle with a workspace of ours.
///
/// The library is loaded and the handle made on the backstage when they are first needed. What fails is tried again for
/// the next op, and a handle that cuBLAS calls broken is replaced for it.
class blas_handle {
public:
    using call = std::function<cublasStatus_t(const blas_call&)>;

    blas_handle() noexcept = default;
    blas_handle(const blas_handle&) = delete;
    blas_handle& operator=(const blas_handle&) = delete;

    /// Sees to the handle and the scratch of one op. Pending: the backend is nudged when it is worth another try.
    result<progress> prepare(backend& b, CUstream s, std::size_t scratch_bytes = 0);

    /// Makes one call on a handle that is prepared, and gives the scratch back. The first call of its kind loads
    /// kernels, which may take long and so happens on the backstage; `copy` makes a call that owns what it needs.
    template <class Call, class Copy>
    result<progress> run(std::uint64_t kind, const Call& direct, const Copy& copy)
    {
        if (job_)
            return collect(kind);
        if (!seen_.contains(kind))
            return run_behind(copy());
        return ended(direct(tools()));
    }

    /// Where the last result of the lane is, on the device.
    CUdeviceptr cell() const noexcept { return reinterpret_cast<CUdeviceptr>(workspace_); }

    /// The backstage has stopped, the stream is idle and the context healthy. A dead context needs nothing.
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
    /// Begins with the cell for results.
    void* workspace_ = nullptr;
    std::size_t workspace_bytes_ = 0;
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    /// What the backstage does for the one op that is pending on the lane.
    std::shared_ptr<job> job_;
    boost::unordered_flat_set<std::uint64_t> seen_;
};

} // namespace coaccel::cuda

#endif
