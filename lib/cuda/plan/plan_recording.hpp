#ifndef COACCEL_CUDA_PLAN_PLAN_RECORDING_HPP
#define COACCEL_CUDA_PLAN_PLAN_RECORDING_HPP

#include "cuda/driver/event_pool.hpp"
#include "cuda/plan/plan_instance.hpp"

#include <cstddef>
#include <cstdint>

namespace coaccel::cuda {

/// Loads an instance, step by step.
///
/// A plan whose ops can all be part of a graph is recorded on a stream of its own. Its ops run there once before, so
/// that libraries have their handles and workspaces and all kernels are loaded: none of that is possible in a capture.
class plan_recording {
public:
    /// `recorder`: the stream for the recording; null: the plan is not recorded.
    plan_recording(backend& b, plan_instance& i, stream_state* recorder) noexcept;
    plan_recording(const plan_recording&) = delete;
    plan_recording& operator=(const plan_recording&) = delete;

    /// Continues on the stream of the load op. `launched`: the instance is loaded. After an error everything is
    /// released, unless the context is dead.
    result<readiness> advance(stream_state& lane);

    /// A larger plan is captured on the thread pool, because that takes more than some milliseconds.
    static constexpr std::size_t most_ops_captured_here = 1024;
    /// Other code of the process can invalidate a capture.
    static constexpr int most_captures = 4;
    static constexpr int most_surprises = 3;

private:
    enum class stage : std::uint8_t { staging, start, warm_up, wait, prepare, capture, instantiate, end, loaded };

    /// Continues the stage. `passed`: it was completed and `stage_` is the next one.
    result<progress> step(stream_state& lane);
    progress go_to(stage next) noexcept;
    error_code start(stream_state& lane);
    result<progress> wait_for_warm_up(stream_state& lane);
    result<progress> wait_for_recorder(stream_state& lane);
    result<progress> prepare_ops(stream_state& lane);
    result<progress> capture();
    error_code make_wait(stream_state& waiting, stream_state& for_work);
    result<readiness> fail(stream_state& lane);

    backend& backend_;
    plan_instance& instance_;
    stream_state* recorder_;
    stage stage_ = stage::staging;
    op_sequence warm_up_;
    /// The next op to prepare.
    std::size_t next_ = 0;
    int captures_ = 0;
    /// How often the next op was launched by its preparation, because its library has no longer what the warm-up made.
    int surprises_ = 0;
    /// The commands of such launches that the device may not have completed.
    std::size_t commands_ = 0;
    error_code failure_;
    helper_job job_;
};

} // namespace coaccel::cuda

#endif
