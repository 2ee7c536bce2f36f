#ifndef COACCEL_CUDA_PLAN_RUN_ARGUMENTS_HPP
#define COACCEL_CUDA_PLAN_RUN_ARGUMENTS_HPP

#include "cuda/plan/copy_kernels.hpp"

#include <coaccel/plan/detail/plan_ops.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace coaccel::cuda {

/// The way of the arguments of runs between the callers' memory and that of an instance: through pinned memory of the
/// instance, or directly if the caller's memory is page-locked and large enough. Used on the executor, except for the
/// functions that say otherwise.
class run_arguments {
public:
    /// Copying this much takes as long as changing a node of the graph for a direct argument, and back for the next
    /// run.
    static constexpr std::uint64_t least_direct_bytes = std::uint64_t(64) << 10;

    /// `instance`: the memory of the instance.
    run_arguments(backend& b, const detail::plan_data& plan, CUdeviceptr instance) noexcept;

    /// Allocates the pinned memory. `tells`: with a completion word, if the outputs permit it. Blocks; call this on the
    /// thread pool.
    error_code allocate(copy_kernels& kernels, bool tells);
    /// Call this on the thread pool too, or as library_resources::destroy.
    void release(copy_kernels& kernels) noexcept;

    const std::byte* staged_inputs() const noexcept { return staged(inputs_); }

    error_code enqueue_inputs(CUstream s) noexcept { return enqueue(inputs_, s); }
    error_code enqueue_outputs(CUstream s) noexcept { return enqueue(outputs_, s); }

    // The same in a capture.
    error_code capture_inputs(CUstream s) { return capture(inputs_, s); }
    error_code capture_outputs(CUstream s) { return capture(outputs_, s); }

    /// Whether runs change nodes of the graph.
    bool changes_graph() const noexcept { return inputs_.may_be_direct || outputs_.may_be_direct; }

    /// Stages the inputs of a run, and changes the graph if the run needs other copies than the last one. `graph` is
    /// null if there is none.
    error_code begin(const detail::plan_run_op& run, CUgraphExec graph) noexcept;
    /// The last step before the run is put on its stream.
    void clear_word() noexcept;
    /// Is set when the outputs of the run have been copied. Null: it has none.
    completion_word* word() const noexcept { return word_; }
    /// Gives the caller the outputs that were staged.
    void deliver(const detail::plan_run_op& run) const noexcept;

private:
    struct side {
        argument_range range;
        /// There is an argument of sufficient size.
        bool may_be_direct = false;
        copy_parts parts;
        CUgraphNode node = nullptr;
        /// The node has other parts.
        bool outdated = false;

        bool empty() const noexcept { return range.where.bytes == 0; }
    };

    static std::byte* staged(const side& s) noexcept { return reinterpret_cast<std::byte*>(s.range.staged); }
    static std::byte* staged(const side& s, const detail::run_argument& a) noexcept;

    /// Whether the device uses the caller's memory in the current run.
    static bool is_direct(const side& s, const detail::run_argument& a) noexcept;

    side make_side(copy_direction way, detail::byte_range where, const std::byte* staged,
                   std::span<const std::uint32_t> slots) const noexcept;
    bool can_be_direct(const detail::run_argument& a) const noexcept;
    error_code enqueue(const side& s, CUstream on) noexcept;
    error_code capture(side& s, CUstream on);
    error_code choose(side& s, std::span<const detail::run_argument> arguments, CUgraphExec graph) noexcept;

    backend& backend_;
    const detail::plan_data& plan_;
    CUdeviceptr instance_;
    copy_kernels::functions kernels_;
    completion_word* word_ = nullptr;
    /// The staged inputs, then the staged outputs.
    std::byte* staging_ = nullptr;
    side inputs_;
    side outputs_;
};

} // namespace coaccel::cuda

#endif
