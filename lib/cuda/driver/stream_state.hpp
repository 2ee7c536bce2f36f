#ifndef COACCEL_CUDA_DRIVER_STREAM_STATE_HPP
#define COACCEL_CUDA_DRIVER_STREAM_STATE_HPP

#include "context/library_resources.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/driver/event_pool.hpp"
#include "cuda/driver/host_func_notifier.hpp"

namespace coaccel::cuda {

/// The state of one lane: its stream, the side stream for its notifications, the resources of libraries.
class stream_state {
public:
    explicit stream_state(CUstream s) noexcept : native(s) {}
    stream_state(const stream_state&) = delete;
    stream_state& operator=(const stream_state&) = delete;

    const CUstream native;
    /// Set by the last command on the stream. Null: that command sets none.
    completion_word* last_word = nullptr;
    /// Created by the first notification.
    CUstream side = nullptr;
    host_func_notifier notifier;
    detail::resource_set resources;
};

} // namespace coaccel::cuda

#endif
