#ifndef COACCEL_CUDA_PLAN_PLAN_INSTANCE_HPP
#define COACCEL_CUDA_PLAN_PLAN_INSTANCE_HPP

#include "cuda/driver/driver_api.hpp"
#include "cuda/plan/launch_values.hpp"
#include "cuda/plan/op_sequence.hpp"
#include "cuda/plan/run_arguments.hpp"
#include "cuda/plan/run_timer.hpp"

#include <coaccel/plan/detail/plan_ops.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace coaccel::cuda {

class backend;
class stream_state;

/// A loaded plan: its ops with the addresses of their operands, pinned memory for the arguments of a run, and, if all
/// ops can be part of one, a graph. Used on the executor, except for the functions that say otherwise.
class plan_instance {
public:
    plan_instance(backend& b, copy_kernels& copies, const detail::plan_load_head& head, void* const* operands);
    plan_instance(const plan_instance&) = delete;
    plan_instance& operator=(const plan_instance&) = delete;

    /// Errors: errc::unsupported_op, with the name of the op.
    error_code find_codes();

    /// Whether all ops can be part of a graph.
    bool recordable() const noexcept;
    bool recorded() const noexcept { return exec_ != nullptr; }

    std::span<bound_op> ops() noexcept { return ops_; }

    enum class states : bool { real, spare };
    /// Gives the ops the addresses of their operands.
    void bind(states which) noexcept;

    /// Fills the memory of the instance and the spare states with zeros; for a graph, copies the buffers that its ops
    /// write, because these ops may need meaningful values.
    error_code clear(CUstream s) noexcept;

    // These run on the thread pool, or on the executor while no job of the instance runs.

    /// Allocates what runs need. Runs without a graph have no completion word: the load, after which they may follow
    /// immediately, runs all copy kernels once, and is not waited for.
    error_code make_staging() { return arguments_.allocate(copies_, recordable()); }
    /// Makes the graph from the ops, which are prepared.
    error_code capture(stream_state& s);
    /// Makes the graph executable. `s`: a stream without other work.
    error_code instantiate(CUstream s) noexcept;

    // Runs. Only the last one uses the pinned memory and the state of the ops: another is pending until that one has
    // completed.

    /// Whether a run uses neither, so that any number of them can be on the device. They hold nothing.
    bool runs_freely() const noexcept { return plan_.over_buffers && recorded(); }

    result<readiness> prepare_run(stream_state& s, bound_op& run);
    error_code launch_run(stream_state& s) noexcept;
    /// Copies the outputs and releases what the run holds. Preconditions: the device has completed the run.
    void finish_run() noexcept;
    /// The commands of the run on its stream.
    std::size_t run_commands() const noexcept
    {
        return (recorded() ? 1 : sequence_.commands() + 2) + timer_.commands();
    }

    /// Waits for the work on the stream and releases everything.
    result<progress> dispose(CUstream after);
    bool disposed() const noexcept { return disposed_; }
    /// Releases what the driver holds. Preconditions: as for library_resources::destroy.
    void destroy() noexcept;

    const std::uint64_t id;
    const std::uint64_t chain;

private:
    enum class step : std::uint8_t { inputs, ops, outputs, launched };

    /// Gives the ops their parameters: the addresses of factors, and the places of the arguments of launches.
    void bind_parameters();
    error_code wait_for(CUstream s) noexcept;
    result<readiness> advance_run(stream_state& s);
    /// The run is on the stream.
    void note_launched(stream_state& s) noexcept;

    backend& backend_;
    copy_kernels& copies_;
    const detail::plan_data& plan_;
    /// The operands of the load op.
    std::vector<void*> operands_;
    /// The ops themselves, the addresses of their operands, and memory for their replies, which are not used.
    std::vector<detail::listed_op> records_;
    std::vector<bound_op> ops_;
    std::vector<scalar_address> scalars_;
    launch_values values_;
    run_arguments arguments_;
    /// After instantiation only if nodes are changed for runs, which the driver finds by those of the graph.
    CUgraph graph_ = nullptr;
    CUgraphExec exec_ = nullptr;

    /// The last run, until it is finished.
    bound_op* run_ = nullptr;
    step step_ = step::inputs;
    op_sequence sequence_;
    run_timer timer_;
    /// The work before its disposal has completed.
    bool unused_ = false;
    bool disposed_ = false;
    helper_job job_;
};

} // namespace coaccel::cuda

#endif
