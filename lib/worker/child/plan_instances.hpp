#ifndef COACCEL_WORKER_CHILD_PLAN_INSTANCES_HPP
#define COACCEL_WORKER_CHILD_PLAN_INSTANCES_HPP

#include "plan/graph.hpp"

#include <coaccel/core/error.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <memory>
#include <span>
#include <vector>

namespace coaccel::worker {

/// The instances that the context of a worker holds or is about to hold. The context has the addresses of an instance's
/// plan and buffers until the instance is unloaded; therefore an instance keeps its plan alive and delays the release
/// of its buffers, whatever the parent asks for.
class COACCEL_DECL plan_instances {
public:
    struct entry {
        std::shared_ptr<const detail::plan_data> plan;
        std::uint64_t chain = 0;
        /// In the order of plan_load_operands.
        std::vector<any_ref> refs;
        /// For a graph: what its runs have in common.
        std::shared_ptr<detail::graph_run> run = nullptr;
        bool unloading = false;

        const any_ref& memory() const noexcept { return refs[detail::plan_load_operands::instance]; }
    };

    /// The load of an instance begins. Returns false for an instance that exists, or for refs that do not match the
    /// plan.
    [[nodiscard]] bool add(std::uint64_t instance, entry made);

    /// Null if there is no such instance, or if it is being unloaded.
    const entry* find(std::uint64_t instance) const noexcept;

    /// Errors: errc::invalid_argument for an unknown instance, errc::worker_corrupted for another chain.
    error_code begin_unload(const detail::plan_unload_op& op);

    /// The load has failed, or the unload has ended. Returns the buffers that can be released from here on.
    std::vector<any_ref> remove(std::uint64_t instance);
    /// The instance still exists, because it could not be unloaded.
    void unload_failed(std::uint64_t instance) noexcept;

    /// Returns whether an instance uses the buffer, whose release must then wait for `remove`.
    [[nodiscard]] bool delay_release(const any_ref& buffer);

    std::size_t size() const noexcept { return entries_.size(); }

private:
    static std::uint64_t key(const any_ref& r) noexcept { return std::uint64_t(r.version) << 32 | r.slot; }

    struct use {
        std::size_t instances = 0;
        bool released = false;
    };

    boost::unordered_flat_map<std::uint64_t, entry> entries_;
    boost::unordered_flat_map<std::uint64_t, use> buffers_;
};

/// The errc::invalid_argument for a run or an unload of an instance that does not exist.
COACCEL_DECL error_code no_instance(std::string_view op, std::uint64_t instance) noexcept;

} // namespace coaccel::worker

#endif
