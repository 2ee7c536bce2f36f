#ifndef COACCEL_WORKER_PARENT_REMOTE_CONTEXT_HPP
#define COACCEL_WORKER_PARENT_REMOTE_CONTEXT_HPP

#include "context/context.hpp"
#include "posix/fork_detector.hpp"
#include "worker/parent/chunked_copies.hpp"
#include "worker/parent/context_end.hpp"
#include "worker/parent/held_requests.hpp"
#include "worker/parent/kernel_sender.hpp"
#include "worker/parent/outgoing_records.hpp"
#include "worker/parent/plan_sender.hpp"
#include "worker/parent/remote_buffers.hpp"
#include "worker/parent/reply_polling.hpp"
#include "worker/parent/reply_slots.hpp"
#include "worker/parent/reply_watch.hpp"
#include "worker/parent/split_runs.hpp"
#include "worker/parent/staged_run.hpp"
#include "worker/parent/worker_link.hpp"
#include "worker/transport/doorbell_waiter.hpp"
#include "worker/transport/staging.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace coaccel {
class fault_injector;
}

namespace coaccel::worker {

struct remote_setup {
    detail::context_identity identity;
    std::shared_ptr<staging> memory;
    /// Fault injector of the host backend; null: no faults are injected.
    fault_injector* faults = nullptr;
    std::chrono::nanoseconds spin{};
    int copy_threads = 4;
    image_limits images{};
};

/// A context in a worker process: sends requests, receives replies, and fails the pending requests when the process
/// ends.
class COACCEL_DECL remote_context final : public detail::context, private outgoing_events, private copy_events {
public:
    remote_context(std::unique_ptr<worker_link> link, std::shared_ptr<doorbell_waiter> watch,
                   detail::context_events& events, const context_options& options, remote_setup setup);
    ~remote_context() override;

    std::string_view backend_name() const noexcept override { return link_->backend(); }
    void adopt(detail::context_identity identity) noexcept override { setup_.identity = identity; }
    error_code pin(std::span<std::byte>) override { return errc::not_isolatable; }
    const op_info* describe(std::uint64_t) const noexcept override { return nullptr; }
    /// A forked child cannot start workers, so no request may wait for a new context there.
    bool replaceable() const noexcept override { return !detail::forked(); }
    void submit(detail::request& r, detail::clock::time_point now) override;
    void release(const any_ref& buffer) noexcept override;
    void abandon(const std::string& why) noexcept override;
    using context::turn;
    detail::next_turn turn(detail::clock::time_point now, detail::clock::duration patience) override;
    void drop(detail::async_op_list& out) noexcept override;
    bool accepting() const noexcept override { return !end_.dying(); }
    bool can_export() const noexcept override { return link_->can_export(); }
    std::size_t live_buffers() const noexcept override { return buffers_.live(); }
    memory_info memory() const noexcept override;
    hardware_info hardware() const override { return link_->hardware(); }
    std::shared_ptr<detail::pinned_memory> pinned() const override { return setup_.memory; }

private:
    /// What a reply belongs to: a whole request, the allocation for a copy, or a piece of a copy.
    struct in_flight_request {
        detail::request* who = nullptr;
        chunked_copies::copy* allocation_of = nullptr;
        chunked_copies::piece* part = nullptr;
        std::optional<std::uint64_t> block{};
        std::optional<transfer_view> small{};
        bool into_pinned = false;
        /// It imports or exports memory.
        bool memory = false;
        /// It is a run of a plan, whose staged arguments are in `block`.
        bool run = false;
    };

    // outgoing_events
    void on_written() noexcept override { link_->wake_worker(); }
    void on_corrupted() noexcept override { condemn(errc::worker_corrupted); }

    // copy_events
    void send_piece(const piece_message& m) override;
    void copied(detail::request& r, const error_code& ec) noexcept override { complete(r, ec); }

    error_code refusal(const detail::request& r) const;
    error_code refusal(const bound_op& o) const;
    error_code nonsense(const bound_op& o) const noexcept;
    error_code plan_refusal(const bound_op& o) const;
    error_code load_refusal(const bound_op& o) const;
    error_code run_refusal(const bound_op& o) const;
    void start_in_order(detail::request& r);
    void start(detail::request& r);
    error_code send_plan(const detail::request& r);
    bool start_plan(detail::request& r);
    void send_load(detail::request& r);
    void start_run(detail::request& r);
    error_code memory_refusal(const bound_op& o) const;
    bool start_memory(detail::request& r);
    void send_import(detail::request& r);
    void send_export(detail::request& r);
    bool take_memory(decoder& in, std::uint64_t id, detail::request& r, error_code& ec);
    bool add_made(const any_ref& made, std::uint64_t count, dtype type);
    request_head head_for(std::uint64_t id, const detail::request& r) noexcept;
    /// A request, or a part of one, has ended.
    void complete(detail::request& r, const error_code& ec) noexcept;
    void start_copy(detail::request& r, const transfer_view& v);
    bool start_small(detail::request& r, const transfer_view& v);
    void send(detail::request& r, in_flight_request f, const transfer_view* v, std::uint64_t offset);
    void send_release(const any_ref& buffer);
    std::uint64_t enlist(const in_flight_request& f);
    bool take_replies();
    bool on_reply(std::span<const std::byte> record);
    bool on_ended(decoder& in);
    bool on_unsupported(decoder& in);
    void remove(std::uint64_t id);
    void finish(const in_flight_request& f, const error_code& ec);
    bool take_reply(decoder& in, bound_op& o);
    static bool take_measured_time(decoder& in, const bound_op& o);
    bool take_results(decoder& in, detail::request& r, std::size_t ops, bool succeeded);
    void deliver(const in_flight_request& f);

    void continue_copies();
    void condemn(errc why, detail::loss_cause cause = detail::loss_cause::fault) noexcept;
    void condemn(errc why, const std::string& text) noexcept;
    detail::next_turn die();
    void take_all(const std::function<void(detail::request&)>& function);
    bool writes_to_pinned();
    bool awaits_replies() const noexcept { return !end_.dead() && !in_flight_.empty(); }
    bool busy() const noexcept { return awaits_replies() || !copies_.empty() || !held_.empty() || outgoing_.waiting(); }
    notification wake_up() noexcept;
    injected_fault next_injected_fault(std::size_t ops) noexcept;

    std::unique_ptr<worker_link> link_;
    std::shared_ptr<doorbell_waiter> watch_;
    detail::context_events& events_;
    remote_setup setup_;
    context_end end_;
    reply_polling polling_;
    reply_watch reply_watch_;
    outgoing_records outgoing_;
    /// The last record that was read.
    std::vector<std::byte> record_;
    reply_slots<in_flight_request> in_flight_;
    /// How many of them are exports.
    std::size_t exports_ = 0;
    /// The worker can write to memory that outlives it.
    bool shares_writable_ = false;
    held_requests held_;
    kernel_sender kernels_;
    plan_sender plans_;
    split_runs splits_;
    /// The last run that was sent.
    run_frame run_;
    remote_buffers buffers_;
    /// Time of the current turn.
    detail::clock::time_point now_{};

    // Last member, because the jobs of its threads use the others.
    chunked_copies copies_;
};

} // namespace coaccel::worker

#endif
