#ifndef COACCEL_CUDA_STREAM_STATE_HPP
#define COACCEL_CUDA_STREAM_STATE_HPP

#include "cuda/blas_handle.hpp"
#include "cuda/callback.hpp"
#include "cuda/load/driver_api.hpp"

namespace coaccel::cuda {

/// What belongs to one lane: its stream, the side stream its notifications run on, its cuBLAS handle.
class stream_state {
public:
    explicit stream_state(CUstream s) noexcept : native(s) {}
    stream_state(const stream_state&) = delete;
    stream_state& operator=(const stream_state&) = delete;

    const CUstream native;
    /// Made when first asked to notify.
    CUstream side = nullptr;
    callback notifier;
    blas_handle blas;
};

} // namespace coaccel::cuda

#endif
