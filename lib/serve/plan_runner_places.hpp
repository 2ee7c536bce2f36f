#ifndef COACCEL_SERVE_PLAN_RUNNER_PLACES_HPP
#define COACCEL_SERVE_PLAN_RUNNER_PLACES_HPP

#include "serve/plan_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// The batches that a plan_runner can have at the same time, and their memory.
namespace coaccel::detail {

/// A batch on a device, with its memory.
struct plan_runner::place final : batch_run {
    explicit place(std::size_t r) noexcept : replica(r) {}

    const std::size_t replica;
    std::size_t model = 0;
    /// The device reads the inputs from here and writes the outputs here.
    pinned_buffer<std::uint8_t> memory;
    /// Replaces `memory`, which belongs to an earlier context.
    pinned_buffer<std::uint8_t> next_memory;
    /// The generation of the context for which the newest memory was made.
    generation made_for = 0;
    bool allocating = false;
    bool busy = false;
    /// What it has started.
    enum class step : std::uint8_t {
        collecting, ///< The copy of the inputs on another thread.
        running,    ///< A run.
        delivering, ///< The copy of the outputs on another thread.
    };
    step now = step::running;
    /// The last copy on another thread.
    member_copies::job_ptr copy;
    listed_run arguments;
    /// The members run one by one, in this memory.
    bool splitting = false;
    std::vector<std::byte> single;
    /// The member that runs.
    std::size_t member = 0;

    std::byte* data() const noexcept { return reinterpret_cast<std::byte*>(memory.data()); }
};

struct plan_runner::replica {
    device gpu;
    /// For each model, by size.
    std::vector<std::vector<sized_plan>> plans;
    std::vector<std::unique_ptr<place>> places;
    /// Waits for a change of a device that has failed.
    std::weak_ptr<repair_watch> repair;
};

} // namespace coaccel::detail

#endif
