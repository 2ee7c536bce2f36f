#ifndef COACCEL_WORKER_PARENT_CHUNKED_COPIES_HPP
#define COACCEL_WORKER_PARENT_CHUNKED_COPIES_HPP

#include "worker/parent/context_end.hpp"
#include "worker/protocol/wire.hpp"
#include "worker/transport/chunked_copy.hpp"
#include "worker/transport/copy_jobs.hpp"
#include "worker/transport/staging.hpp"

#include <functional>
#include <list>
#include <vector>

namespace coaccel::worker {

class copy_events;

/// The large copies between the callers' memory and the worker. They pass through the staging area in pieces, which
/// copy threads fill or empty, so that the executor's thread does not copy and a copy of any size needs little memory.
/// After each event every copy starts as many pieces as it may.
class COACCEL_DECL chunked_copies {
public:
    /// A request that transfers the caller's memory.
    struct copy;
    /// A part of a copy with its own place in the staging area.
    struct piece;

    /// `end`: while the context dies, no piece is started and no request completes, because the context completes all
    /// its requests together. `done` is notified when a copy thread has finished a job.
    chunked_copies(staging& memory, copy_events& events, const context_end& end, int threads, notification done);
    ~chunked_copies();

    bool empty() const noexcept;
    /// Whether a copy thread uses the callers' memory.
    bool copying() const noexcept { return copying_ > 0; }
    /// Whether a copy to or from the buffer in this slot has pieces that were not sent.
    bool unsent(std::uint32_t slot) const noexcept;

    void start(detail::request& r, const transfer_view& v);
    /// The buffer must be allocated first; the copy starts with allocated(). The reference stays valid until then.
    copy& start_after_allocation(detail::request& r, const transfer_view& v);
    void allocated(copy& c, const error_code& ec);
    static detail::request& request_of(copy& c) noexcept;

    /// The worker has replied to a piece.
    void replied(piece& p, const error_code& ec);
    /// Processes the finished jobs of the copy threads. Returns whether there were any.
    bool take_copied();
    /// Continues the copies that waited for room in the staging area.
    void go_on();

    /// Waits for the jobs that are running; the queued ones are not run.
    void stop() noexcept { jobs_.stop(); }
    /// Removes the copies, and calls the function with the request of each. Their pieces keep their memory, to which
    /// the worker may still write.
    void take_all(const std::function<void(detail::request&)>& function);
    /// Returns the memory of all pieces. Preconditions: the worker has ended, and stop() was called.
    void give_back_memory() noexcept;

private:
    /// Identifies a finished job of a copy thread: room made for the destination of a copy, or one piece copied.
    struct token;

    copy& add(detail::request& r, const transfer_view& v);
    void go_on(copy& c);
    void begin_piece(copy& c, const chunked_copy::piece& part, std::uint64_t block);
    void send(piece& p);
    void piece_over(piece& p, const error_code& ec);
    void finish_if_over(copy& c);

    staging& memory_;
    copy_events& events_;
    const context_end& end_;
    const notification done_;
    std::list<copy> copies_;
    std::list<piece> pieces_;
    std::vector<copy_jobs::token> copied_;
    int copying_ = 0;

    // Last member, because its jobs use the others.
    copy_jobs jobs_;
};

/// What the copies need from their context.
class copy_events {
public:
    struct piece_message {
        chunked_copies::piece& what;
        const detail::request& of;
        const op_frame& frame;
        /// It is the first piece of its request.
        bool first = false;
    };

    /// Sends a piece to the worker, whose reply leads to chunked_copies::replied.
    virtual void send_piece(const piece_message& m) = 0;
    /// All pieces of the request have ended.
    virtual void copied(detail::request& r, const error_code& ec) noexcept = 0;

protected:
    ~copy_events() = default;
};

} // namespace coaccel::worker

#endif
