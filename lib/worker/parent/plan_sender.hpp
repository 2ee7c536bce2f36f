#ifndef COACCEL_WORKER_PARENT_PLAN_SENDER_HPP
#define COACCEL_WORKER_PARENT_PLAN_SENDER_HPP

#include "worker/parent/outgoing_records.hpp"
#include "worker/protocol/plan_frames.hpp"

#include <coaccel/plan/detail/plan_ops.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

namespace coaccel::worker {

/// Sends plans to a worker before the first load of an instance, and lets the worker forget a plan of which no instance
/// is left. From then on its address may be that of another plan.
class COACCEL_DECL plan_sender {
public:
    explicit plan_sender(outgoing_records& out, const plan_limits& limits = {}) noexcept : out_(out), limits_(limits) {}

    /// Whether the worker has the plan.
    bool has(const detail::plan_data& p) const noexcept { return plans_.contains(&p); }

    /// Sends the plan unless the worker has it, and counts the instance.
    ///
    /// Errors: errc::invalid_argument for a plan that is too large or for which the worker has no room, and for an
    /// instance that exists.
    error_code add(const detail::plan_load_head& load);

    /// Preconditions: has(p).
    std::uint64_t number_of(const detail::plan_data& p) const noexcept { return plans_.find(&p)->second.number; }

    /// The instance was not loaded, or is unloaded. Ignored for an unknown instance.
    void remove(std::uint64_t instance);

private:
    struct entry {
        std::uint64_t number = 0;
        std::uint64_t bytes = 0;
        std::size_t instances = 0;
    };

    error_code send(const detail::plan_data& p);

    outgoing_records& out_;
    const plan_limits limits_;
    boost::unordered_flat_map<const detail::plan_data*, entry> plans_;
    boost::unordered_flat_map<std::uint64_t, const detail::plan_data*> instances_;
    std::uint64_t bytes_ = 0;
    std::uint64_t last_number_ = 0;
};

} // namespace coaccel::worker

#endif
