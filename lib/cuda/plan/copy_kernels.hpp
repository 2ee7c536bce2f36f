#ifndef COACCEL_CUDA_PLAN_COPY_KERNELS_HPP
#define COACCEL_CUDA_PLAN_COPY_KERNELS_HPP

#include "cuda/driver/event_pool.hpp"
#include "cuda/plan/copy_parts.hpp"

#include <coaccel/core/result.hpp>

#include <cstdint>
#include <mutex>
#include <vector>

namespace coaccel::cuda {

class backend;

/// The kernels that copy the arguments of runs, in one context, and the completion words that one of them sets.
///
/// The driver launches a graph of kernels in a third of the time that it needs for one with copies, and the device goes
/// from kernel to kernel without waiting for a copy engine: on an H200, a request of a copy, a gemv and a copy takes
/// 14 us instead of 20.
class copy_kernels {
public:
    struct functions {
        /// Null: this GPU or driver cannot, and copies are commands.
        CUfunction copy = nullptr;
        /// Copies one part of at most `most_told_bytes` and sets a completion word. Null: it cannot.
        CUfunction copy_and_tell = nullptr;
    };

    // These block, and may be called on any thread.

    /// Loads them, once. Errors: the context is dead.
    result<functions> load(backend& b);
    /// A word, which stays readable until `unload`: an event may have it longer than the instance. Null: no memory.
    completion_word* take_word(backend& b) noexcept;
    void give_back(completion_word* word) noexcept;

    /// Preconditions: as for library_resources::destroy.
    void unload(backend& b) noexcept;

private:
    std::mutex mutex_;
    bool tried_ = false;
    CUmodule module_ = nullptr;
    functions functions_;
    /// Page-locked memory.
    std::vector<void*> pages_;
    std::vector<completion_word*> words_;
};

/// One block copies so much in the time of a launch.
inline constexpr std::uint64_t most_told_bytes = 16 * 1024;

/// Puts a launch on a stream. The addresses are multiples of 16.
error_code launch_copies(backend& b, CUfunction kernel, const copy_parts& parts, CUstream s) noexcept;
/// The word is set when the part has been copied.
error_code launch_copy_and_tell(backend& b, CUfunction kernel, const copy_part& part, completion_word* word,
                                CUstream s) noexcept;

/// Changes the launch in an executable graph.
error_code change_copies(backend& b, CUfunction kernel, const copy_parts& parts, CUgraphExec graph,
                         CUgraphNode node) noexcept;

} // namespace coaccel::cuda

#endif
