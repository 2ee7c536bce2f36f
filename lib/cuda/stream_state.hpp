#ifndef COACCEL_CUDA_STREAM_STATE_HPP
#define COACCEL_CUDA_STREAM_STATE_HPP

#include "cuda/blas_handle.hpp"
#include "cuda/callback.hpp"
#include "cuda/landing_marks.hpp"
#include "cuda/load/driver_api.hpp"

namespace coaccel::cuda {

/// What belongs to one lane: its stream, the side stream its notifications run on, its cuBLAS handle.
class stream_state {
public:
    stream_state(CUstream s, landing_marks::mark m) noexcept : native(s), mark(m) {}
    stream_state(const stream_state&) = delete;
    stream_state& operator=(const stream_state&) = delete;

    /// The one whose number is next has nothing before it.
    bool alone(std::uint64_t order) const noexcept { return passed + 1 == order; }

    const CUstream native;
    /// Written by the stream with the number of a record that was alone on it.
    landing_marks::mark mark;
    /// How many were recorded, and up to which they are known to have passed.
    std::uint64_t recorded = 0;
    std::uint64_t passed = 0;
    /// Made when first asked to notify.
    CUstream side = nullptr;
    callback notifier;
    blas_handle blas;
};

} // namespace coaccel::cuda

#endif
