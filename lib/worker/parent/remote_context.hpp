#ifndef COACCEL_WORKER_PARENT_REMOTE_CONTEXT_HPP
#define COACCEL_WORKER_PARENT_REMOTE_CONTEXT_HPP

#include "context/context.hpp"
#include "posix/fork_detector.hpp"
#include "worker/parent/remote_buffers.hpp"
#include "worker/parent/reply_estimator.hpp"
#include "worker/parent/reply_slots.hpp"
#include "worker/parent/reply_watch.hpp"
#include "worker/parent/sent_kernels.hpp"
#include "worker/parent/worker_link.hpp"
#include "worker/transport/chunked_copy.hpp"
#include "worker/transport/copy_jobs.hpp"
#include "worker/transport/doorbell_waiter.hpp"
#include "worker/transport/staging.hpp"

#include <deque>
#include <functional>
#include <list>
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
class COACCEL_DECL remote_context final : public detail::context {
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
    using context::turn;
    detail::next_turn turn(detail::clock::time_point now, detail::clock::duration patience) override;
    void drop(detail::async_op_list& out) noexcept override;
    bool accepting() const noexcept override { return !dying_; }
    std::size_t live_buffers() const noexcept override { return live_buffers_; }
    memory_info memory() const noexcept override;
    hardware_info hardware() const override { return link_->hardware(); }
    std::shared_ptr<detail::pinned_memory> pinned() const override { return setup_.memory; }

private:
    struct copy;
    struct piece;

    /// Identifies a finished job of a copy thread: room made for the destination of a copy, or one piece copied.
    struct copy_token {
        copy* of_copy = nullptr;
        piece* of_piece = nullptr;
    };

    /// A request that transfers the caller's memory.
    struct copy {
        detail::request* who = nullptr;
        transfer_view what;
        chunked_copy state;
        /// The buffer is still being allocated.
        bool allocating = false;
        bool has_room = true;
        copy_token token;
    };

    struct piece {
        copy* of = nullptr;
        chunked_copy::piece part;
        std::uint64_t block = 0;
        copy_token token;
        std::list<piece>::iterator self;
    };

    /// What a reply belongs to: a whole request, the allocation for a copy, or a piece of a copy.
    struct in_flight_request {
        detail::request* who = nullptr;
        copy* allocation_of = nullptr;
        piece* part = nullptr;
        std::optional<std::uint64_t> block{};
        std::optional<transfer_view> small{};
        bool into_pinned = false;
    };

    /// A request or a release that waits for earlier copies.
    struct held {
        detail::request* who = nullptr;
        any_ref released;
    };

    error_code refusal(const detail::request& r) const;
    error_code refusal(const bound_op& o) const;
    error_code nonsense(const bound_op& o) const noexcept;
    bool blocked(std::uint32_t slot) const noexcept;
    bool must_wait(const detail::request& r) const noexcept;
    bool uses(const detail::request& r, std::uint32_t slot) const noexcept;
    void start(detail::request& r);
    void start_copy(detail::request& r, const transfer_view& v);
    bool start_small(detail::request& r, const transfer_view& v);
    void send(detail::request& r, in_flight_request f, const transfer_view* v, std::uint64_t offset);
    void send_release(const any_ref& buffer);
    void send_piece(piece& p);
    error_code send_images(const detail::request& r);
    error_code send_image(std::uint64_t kernel);
    void forget_images();
    void go_on(copy& c);
    void go_on_with_all();
    void begin_piece(copy& c, const chunked_copy::piece& part, std::uint64_t block);
    bool take_copied();
    void piece_over(piece& p, const error_code& ec);
    void finish_if_over(copy& c);
    bool held_with_state(std::uint64_t state) const noexcept;
    void let_go_of_held();

    std::uint64_t enlist(const in_flight_request& f);
    void post(std::span<const std::byte> record);
    bool flush();
    bool take_replies();
    bool on_reply(std::span<const std::byte> record);
    bool on_ended(decoder& in);
    bool on_unsupported(decoder& in);
    void remove(std::uint64_t id, const in_flight_request& f);
    void finish(const in_flight_request& f, const error_code& ec);
    bool take_reply(decoder& in, bound_op& o);
    bool take_results(decoder& in, detail::request& r, std::size_t ops, bool succeeded);
    void deliver(const in_flight_request& f);

    bool keep_looking(detail::clock::time_point now, const detail::wait_policy::decision& next) noexcept;

    void condemn(errc why) noexcept;
    void condemn(errc why, const std::string& text) noexcept;
    detail::next_turn die();
    void take_all(const std::function<void(detail::request&)>& function);
    bool awaits_replies() const noexcept { return !dead_ && !in_flight_.empty(); }
    bool busy() const noexcept { return awaits_replies() || !copies_.empty() || !held_.empty() || !waiting_.empty(); }
    notification wake_up() noexcept;
    injected_fault next_injected_fault(std::size_t ops) noexcept;

    std::unique_ptr<worker_link> link_;
    std::shared_ptr<doorbell_waiter> watch_;
    detail::context_events& events_;
    remote_setup setup_;
    detail::wait_policy rule_;
    reply_estimator estimator_;
    reply_watch reply_watch_;

    encoder out_;
    std::vector<std::byte> record_;
    std::deque<std::vector<std::byte>> waiting_;
    reply_slots<in_flight_request> in_flight_;
    std::size_t into_pinned_ = 0;
    std::list<copy> copies_;
    std::list<piece> pieces_;
    std::vector<copy_jobs::token> copied_;
    int copying_ = 0;
    std::deque<held> held_;
    sent_kernels images_;
    std::size_t images_kept_ = 0;
    remote_buffers buffers_;
    std::size_t live_buffers_ = 0;
    /// The context has polled without a gap, so the measured completion times are accurate.
    bool looking_ = true;
    /// Time of the current turn.
    detail::clock::time_point now_{};
    detail::clock::time_point last_look_{};
    detail::clock::time_point last_moved_{};
    detail::clock::time_point looking_since_{};
    bool dying_ = false;
    bool rogue_ = false;
    bool dead_ = false;
    error_code why_;

    // Last member, because its jobs use the others.
    copy_jobs copy_jobs_;
};

} // namespace coaccel::worker

#endif
