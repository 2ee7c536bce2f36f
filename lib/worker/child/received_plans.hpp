#ifndef COACCEL_WORKER_CHILD_RECEIVED_PLANS_HPP
#define COACCEL_WORKER_CHILD_RECEIVED_PLANS_HPP

#include "worker/protocol/plan_codec.hpp"
#include "worker/protocol/plan_frames.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <memory>
#include <string>
#include <vector>

namespace coaccel::worker {

/// The plans received from the parent, by the parent's numbers.
class COACCEL_DECL received_plans {
public:
    explicit received_plans(const plan_limits& limits = {}) noexcept : limits_(limits) {}

    /// Returns false if the part does not match the parts before it, exceeds the limits, or completes bytes that are
    /// not a plan.
    [[nodiscard]] bool add(const plan_frame& frame, const plan_environment& here);

    /// Returns false for an unknown plan. Instances keep their plan alive.
    [[nodiscard]] bool remove(std::uint64_t number) noexcept;

    struct entry {
        /// Null if this process cannot run the plan.
        std::shared_ptr<const detail::plan_data> plan;
        /// Why it cannot. Not an error_code, because the message of an error_code is not kept for long.
        errc problem{};
        std::string message;

        error_code refusal() const { return plan ? error_code() : make_error_with_message(problem, message); }
    };

    /// Null for a plan that is unknown or not complete.
    const entry* find(std::uint64_t number) const noexcept;

private:
    struct slot : entry {
        std::uint64_t total = 0;
        bool complete = false;
        /// The parts received so far.
        std::vector<std::byte> bytes;
    };

    const plan_limits limits_;
    boost::unordered_flat_map<std::uint64_t, slot> slots_;
    // Includes the parts that have not arrived yet.
    std::uint64_t bytes_ = 0;
};

} // namespace coaccel::worker

#endif
