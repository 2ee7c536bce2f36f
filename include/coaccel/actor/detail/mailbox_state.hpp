#ifndef COACCEL_ACTOR_DETAIL_MAILBOX_STATE_HPP
#define COACCEL_ACTOR_DETAIL_MAILBOX_STATE_HPP

#include <coaccel/actor/detail/dropped_replies.hpp>
#include <coaccel/actor/detail/ring.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/detail/pending.hpp>
#include <coaccel/detail/shutdown_hook.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

namespace coaccel::detail {

/// A message on its way in. The message is engaged until it is accepted or handed back.
template <class M>
class send_waiter : public pending {
public:
    send_waiter() = default;
    explicit send_waiter(M&& m) : message(std::move(m)) {}

    std::tuple<error_code> take() noexcept { return {ec}; }

    std::optional<M> message;

protected:
    ~send_waiter() = default;
};

/// What a mailbox and its refs share: the ring, and behind a mutex those who wait for it.
template <class M>
class mailbox_state final : public shutdown_hook {
public:
    mailbox_state(asio::any_io_executor ex, std::size_t capacity) : executor_(std::move(ex)), ring_(capacity)
    {
        enlist(executor_.get());
    }

    ~mailbox_state() { withdraw(); }

    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }
    std::size_t capacity() const noexcept { return ring_.capacity(); }
    std::size_t size() const noexcept { return ring_.size(); }
    bool closed() const noexcept { return ring_.closed(); }

    /// Set by an actor before anyone else knows the mailbox.
    void hold_dropped_replies() { dropped_ = std::make_unique<dropped_replies>(); }
    dropped_replies* dropped() const noexcept { return dropped_.get(); }

    error_code try_send(M& message)
    {
        // Those who wait were first. Relaxed: it orders only against waits that happened before this call.
        if (senders_waiting_.load(std::memory_order_relaxed) != 0)
            return ring_.closed() ? refusal() : errc::queue_full;
        switch (ring_.push(message)) {
        case push_result::accepted: return {};
        case push_result::accepted_wake: wake_receiver(); return {};
        case push_result::full: return errc::queue_full;
        case push_result::closed: break;
        }
        return refusal();
    }

    void send(send_waiter<M>& op)
    {
        op.ec = try_send(*op.message);
        if (op.ec != errc::queue_full)
            return op.post();
        std::unique_lock lock(mutex_);
        if (shut_down_) {
            lock.unlock();
            return op.destroy();
        }
        senders_waiting_.fetch_add(1, std::memory_order_seq_cst);
        senders_.add(op);
        // Room may have come before the consumer could see that somebody waits.
        admit(std::move(lock));
    }

    void cancel(send_waiter<M>& op)
    {
        {
            std::lock_guard lock(mutex_);
            // After a shutdown the operation is gone, so the flag is looked at first.
            if (shut_down_ || !op.waiting())
                return;
            senders_.remove(op);
            senders_waiting_.fetch_sub(1, std::memory_order_seq_cst);
            op.ec = asio::error::operation_aborted;
        }
        op.post();
    }

    void receive(pending& op)
    {
        if (receiving_.exchange(true, std::memory_order_acquire)) {
            op.ec = errc::already_waiting;
            return op.post();
        }
        if (ring_.ready())
            return op.post();
        std::unique_lock lock(mutex_);
        if (shut_down_) {
            lock.unlock();
            return op.destroy();
        }
        if (ring_.sleep()) {
            receiver_.add(op);
            return;
        }
        lock.unlock();
        op.post();
    }

    void cancel(pending& op)
    {
        {
            std::lock_guard lock(mutex_);
            if (shut_down_ || !op.waiting())
                return;
            receiver_.remove(op);
            receiving_.store(false, std::memory_order_release);
            op.ec = asio::error::operation_aborted;
        }
        op.post();
    }

    /// Second half of a receive, on the handler's executor: takes what is there.
    template <class Sink>
    error_code deliver(std::size_t max, Sink&& sink)
    {
        std::unique_lock lock(mutex_);
        const std::size_t taken = abandoned_ ? 0 : ring_.pop(max, sink);
        receiving_.store(false, std::memory_order_release);
        if (taken == 0)
            return errc::closed;
        if (senders_waiting_.load(std::memory_order_seq_cst) != 0)
            admit(std::move(lock));
        return {};
    }

    /// Instead of deliver, for a receiver that cannot take anything.
    void receive_nothing() noexcept { receiving_.store(false, std::memory_order_release); }

    result<M> try_receive()
    {
        if (receiving_.load(std::memory_order_acquire))
            return errc::already_waiting;
        std::optional<M> taken;
        ring_.pop(1, [&taken](M&& m) { taken.emplace(std::move(m)); });
        if (!taken) {
            const error_code none = asio::error::would_block;
            return ring_.drained() ? error_code(errc::closed) : none;
        }
        if (senders_waiting_.load(std::memory_order_seq_cst) != 0)
            admit(std::unique_lock(mutex_));
        return std::move(*taken);
    }

    void close() { close(errc::closed, closing::by_owner); }

    /// The receiver has ended and may be started again: closes with `reason`, and answers what was not received with
    /// it.
    ///
    /// Preconditions: nobody receives.
    void retire(error_code reason)
    {
        close(reason, closing::by_receiver);
        const drop_scope scope(reason);
        // Outside the lock, for the destructors of messages are user code.
        ring_.clear();
    }

    /// Takes a retire() back. Closed by the owner, it stays closed.
    void revive()
    {
        std::lock_guard lock(mutex_);
        if (closing_ != closing::by_receiver)
            return;
        closing_ = closing::none;
        ring_.reopen();
    }

    /// The owner is gone: closes, and destroys what was not received.
    void abandon()
    {
        close();
        pending_list finished;
        {
            std::lock_guard lock(mutex_);
            abandoned_ = true;
            receiver_.move_all(finished);
        }
        finished.post_all();
        // Outside the lock, for the destructors of messages are user code.
        ring_.clear();
    }

    void shutdown(pending_list& out) noexcept override
    {
        std::lock_guard lock(mutex_);
        shut_down_ = true;
        senders_waiting_.store(0, std::memory_order_seq_cst);
        senders_.move_all(out);
        receiver_.move_all(out);
        // Nothing is received any more.
        ring_.close();
        executor_.let_go(out);
    }

private:
    enum class closing : std::uint8_t { none, by_receiver, by_owner };

    void close(error_code reason, closing by)
    {
        pending_list refused;
        pending_list finished;
        {
            std::lock_guard lock(mutex_);
            if (by > closing_) {
                closing_ = by;
                reason_ = reason;
            }
            ring_.close();
            senders_.move_all(refused);
            senders_waiting_.store(0, std::memory_order_seq_cst);
            if (ring_.drained())
                receiver_.move_all(finished);
        }
        refused.fail_all(reason);
        refused.post_all();
        finished.post_all();
    }

    error_code refusal()
    {
        std::lock_guard lock(mutex_);
        // Reopened meanwhile: it was closed when the sender looked.
        return closing_ == closing::none ? error_code(errc::closed) : reason_;
    }

    void admit(std::unique_lock<std::mutex> lock)
    {
        pending_list settled;
        bool wake = false;
        while (pending* front = senders_.front()) {
            auto& op = static_cast<send_waiter<M>&>(*front);
            const push_result pushed = ring_.push(*op.message);
            if (pushed == push_result::full)
                break;
            wake = wake || pushed == push_result::accepted_wake;
            op.ec = pushed == push_result::closed ? reason_ : error_code();
            senders_.move_front(settled);
            senders_waiting_.fetch_sub(1, std::memory_order_seq_cst);
        }
        lock.unlock();
        if (wake)
            wake_receiver();
        settled.post_all();
    }

    void wake_receiver()
    {
        pending_list woken;
        {
            std::lock_guard lock(mutex_);
            // A cancelled receive leaves its mark behind, so this may not be the message the receiver waits for.
            if (ring_.ready())
                receiver_.move_all(woken);
        }
        woken.post_all();
    }

    held_executor executor_;
    ring<M> ring_;
    // Null: dropped replies are answered at once.
    std::unique_ptr<dropped_replies> dropped_;
    // A receive exists, be it waiting or on its way to its handler: nobody else may consume.
    std::atomic<bool> receiving_{false};
    alignas(cache_line) std::atomic<std::size_t> senders_waiting_{0};
    alignas(cache_line) std::mutex mutex_;
    wait_list senders_;
    wait_list receiver_; // one at most
    error_code reason_;
    closing closing_ = closing::none;
    bool shut_down_ = false;
    bool abandoned_ = false;
};

} // namespace coaccel::detail

#endif
