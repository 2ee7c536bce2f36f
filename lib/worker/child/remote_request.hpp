#ifndef COACCEL_WORKER_CHILD_REMOTE_REQUEST_HPP
#define COACCEL_WORKER_CHILD_REMOTE_REQUEST_HPP

#include "context/context.hpp"
#include "worker/child/plan_instances.hpp"
#include "worker/protocol/plan_frames.hpp"
#include "worker/protocol/wire.hpp"

#include <coaccel/core/detail/op_record.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>

#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace coaccel::worker {

/// A request from the parent, in the worker. Objects are reused.
class COACCEL_DECL remote_request final : public detail::request {
public:
    /// Copies the decoded request; nothing refers to the record afterwards.
    ///
    /// Errors: errc::unsupported_op for an op that this build or backend does not know (see `unsupported`),
    /// errc::worker_corrupted for an invalid one.
    error_code load(const submit_frame& frame, const detail::context& context, const kernel_source& images,
                    std::span<std::byte> staging);

    /// Likewise, for the load of an instance, which keeps the plan alive. The refs match the plan.
    void load(const load_frame& frame, std::shared_ptr<const detail::plan_data> plan);

    /// Likewise, for a run. The arguments are read from the staging area and written to it.
    ///
    /// Errors: errc::invalid_argument for an instance that is not loaded, errc::worker_corrupted.
    error_code load(const run_frame& frame, const plan_instances& instances, std::span<std::byte> staging);

    void prepare(std::size_t i) noexcept override;
    void post() override {}
    void destroy() noexcept override {}

    /// Writes the replies of all ops in order; for a failed request only its allocations.
    void put_replies(encoder& out, bool succeeded) const;

    std::uint64_t id() const noexcept { return id_; }
    /// The position of the op for which `load` returned errc::unsupported_op.
    std::uint32_t unsupported() const noexcept { return unsupported_; }
    /// What it does with an instance of a plan.
    enum class plan_step : std::uint8_t { none, load, run, unload };

    plan_step step() const noexcept { return step_; }
    /// Preconditions: step() is not `none`.
    std::uint64_t instance() const noexcept { return instance_; }
    /// Preconditions: step() is `unload`.
    const detail::plan_unload_op& unload() const noexcept { return bound_[0].as<detail::plan_unload_op>(); }

    /// The buffer that op i allocated.
    const any_ref& made(std::size_t i) const noexcept { return cells_[i].made.ref; }

private:
    struct cell : detail::op_record {
        op_kind what = op_kind::plain;
        detail::allocation made;
        /// The description of a launch, which each launch brings along.
        op_info own;
        /// The description of a load, which depends on its plan.
        op_info load;
        /// The inputs and then the outputs of a run.
        std::vector<detail::run_argument> arguments;
        detail::plan_ran ran;
    };

    cell& begin(const request_head& head, std::size_t ops);

    error_code load_op(const op_frame& frame, std::size_t i, const detail::context& context,
                       const kernel_source& images, std::span<std::byte> staging);
    error_code load_launch(const op_frame& frame, cell& c, const kernel_source& images);
    bool check_refs(cell& c, const op_info& info, std::size_t i) const noexcept;

    std::uint64_t id_ = 0;
    std::uint32_t unsupported_ = 0;
    plan_step step_ = plan_step::none;
    std::uint64_t instance_ = 0;
    std::deque<cell> cells_;
    std::vector<bound_op> bound_;
};

} // namespace coaccel::worker

#endif
