#ifndef COACCEL_SERVE_DETAIL_BATCH_RUN_HPP
#define COACCEL_SERVE_DETAIL_BATCH_RUN_HPP

#include <coaccel/serve/detail/batch_request.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coaccel::detail {

class batcher_core;

/// A batch on its way: its requests, and what became of them. Also the message that what it has started has ended.
class batch_run : public batch_message {
public:
    using time_point = batch_request::time_point;

    batch_run() noexcept : batch_message(type::ended) {}
    batch_run(const batch_run&) = delete;
    batch_run& operator=(const batch_run&) = delete;

    /// In the order of their rows. Null: the request has been answered, because it was cancelled or late.
    std::vector<batch_request*> members;
    /// The number of members that it began with.
    std::uint32_t requests = 0;
    /// The rows of all members.
    std::uint32_t rows = 0;
    /// The rows with padding.
    std::uint32_t size = 0;
    /// Its number in the order in which batches were formed.
    std::uint64_t sequence = 0;
    time_point formed{};
    /// When its first run was started; time_point() before, and if all members have given up before.
    time_point started{};
    /// When its last run ended.
    time_point ran{};
    /// What it has started has ended with this error. Set before the message is sent.
    error_code ec;
    /// If each member has an outcome of its own: the errors. Empty: all have the outcome of the batch.
    std::vector<error_code> outcomes;
    /// It has taken longer than allowed: its members have been answered, and its end changes nothing.
    bool overdue = false;
    /// It has ended, and waits until earlier batches have.
    bool ended = false;
    /// What it has started is a copy on another thread, which uses the memory of its members, or will. Only members
    /// that batch_runner::leave removes from it can be answered before it has ended.
    bool uses_members = false;
    /// Its members have their outputs.
    bool delivered = false;
    /// Members that are answered with their `ec` when their memory is no longer used.
    std::uint32_t given_up = 0;
    /// Members that have not given up.
    std::uint32_t left = 0;
    std::uint64_t shape = 0;
    /// The id of its trace event; 0: it has none.
    std::uint64_t trace = 0;

    const error_code& outcome(std::size_t member) const noexcept { return outcomes.empty() ? ec : outcomes[member]; }

protected:
    ~batch_run() = default;
};

/// Runs the batches of a batcher. All functions are called in the batcher's turns, one at a time.
class batch_runner {
public:
    virtual ~batch_runner() = default;

    /// How many batches can run at the same time.
    virtual std::uint32_t places() const noexcept = 0;

    /// Whether it must be started, and calls batcher_core::prepared, before it can run batches.
    virtual bool prepares() const noexcept { return false; }
    virtual void start(batcher_core& core) { static_cast<void>(core); }

    /// Whether a batch of this shape can start now.
    virtual bool has_room(std::uint64_t shape) = 0;

    /// A batch of this shape, without members. Preconditions: has_room(shape).
    virtual batch_run& make(std::uint64_t shape, std::uint32_t rows) = 0;

    /// Starts the batch. The batcher gets it back as a message, once.
    virtual void run(batch_run& run) = 0;

    /// What the batch had started has ended. True: it has started something else.
    virtual bool goes_on(batch_run& run) = 0;

    /// Gives each member whose outcome is no error its outputs. The batch has ended.
    virtual void deliver(batch_run& run) noexcept = 0;

    /// A member gives up, and the batch uses the memory of its members. True: the copy has not begun; the place of the
    /// member is null now, and its memory is not used.
    [[nodiscard]] virtual bool leave(batch_run& run, std::size_t member)
    {
        static_cast<void>(run);
        static_cast<void>(member);
        return false;
    }

    /// All members have left a batch that uses their memory. True: the copy will not begin, and sends no message.
    [[nodiscard]] virtual bool withdraw(batch_run& run)
    {
        static_cast<void>(run);
        return false;
    }

    /// Whether the copy of a batch that uses the memory of its members belongs to the parent of this forked process,
    /// and never ends here.
    virtual bool lost(const batch_run& run) const noexcept
    {
        static_cast<void>(run);
        return false;
    }

    /// Returns when nothing uses the memory of members any more, or will: they are about to be destroyed together with
    /// the execution context.
    virtual void leave_members() noexcept {}

    /// The batch has taken too long, and does not count as running any more; it still has to end.
    virtual void cancel(batch_run& run) { static_cast<void>(run); }

    /// Whether the member has failed only because of where its batch was started, so that it can be in another one.
    virtual bool can_move(const batch_run& run, std::size_t member) const
    {
        static_cast<void>(run);
        static_cast<void>(member);
        return false;
    }

    /// The batch has ended and is no longer used.
    virtual void recycle(batch_run& run) = 0;

    /// A message that the runner has sent to itself.
    virtual void handle(batch_message& message) { static_cast<void>(message); }

    /// A message that is not handled any more. What it owns is moved to `out`, to be destroyed outside all locks.
    virtual void drop(batch_message& message, async_op_list& out) noexcept
    {
        static_cast<void>(message);
        static_cast<void>(out);
    }

    /// Why no batch can start, now and later; success otherwise.
    virtual error_code broken() const { return {}; }

    /// How the runner has failed with this batch, which the restart policy counts; success otherwise.
    virtual error_code failure_of(const batch_run& run) const noexcept
    {
        static_cast<void>(run);
        return {};
    }

    /// The user wants it to work again.
    virtual void revive() {}

    /// No further batch starts.
    virtual void stop() noexcept {}
};

} // namespace coaccel::detail

#endif
