#ifndef COACCEL_ACTOR_DETAIL_MAILBOX_STATE_HPP
#define COACCEL_ACTOR_DETAIL_MAILBOX_STATE_HPP

#include <coaccel/actor/detail/dropped_replies.hpp>
#include <coaccel/actor/detail/ring.hpp>
#include <coaccel/core/detail/async_op.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/core/result.hpp>

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

/// A send operation. `message` is engaged until the mailbox accepts it or the operation ends.
template <class M>
class send_waiter : public async_op_base {
public:
    send_waiter() = default;
    explicit send_waiter(M&& m) : message(std::move(m)) {}

    std::tuple<error_code> take() noexcept { return {ec}; }

    std::optional<M> message;

protected:
    ~send_waiter() = default;
};

/// State shared by a mailbox and its refs: the ring, and the waiting operations under a mutex.
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

    /// Called by an actor before the mailbox is shared.
    void hold_dropped_replies() { dropped_ = std::make_unique<dropped_replies>(); }
    dropped_replies* dropped() const noexcept { return dropped_.get(); }

    error_code try_send(M& message)
    {
        // Waiting senders come first. Relaxed: it orders only against waits that happened before this call.
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
        // Room may have become free before the consumer could see this waiting sender.
        admit(std::move(lock));
    }

    void cancel(send_waiter<M>& op)
    {
        {
            std::lock_guard lock(mutex_);
            // After a shutdown the operation no longer exists, so the flag is checked first.
            if (shut_down_ || !op.waiting())
                return;
            senders_.remove(op);
            senders_waiting_.fetch_sub(1, std::memory_order_seq_cst);
            op.ec = asio::error::operation_aborted;
        }
        op.post();
    }

    void receive(async_op_base& op)
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

    void cancel(async_op_base& op)
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

    /// Second half of a receive, on the handler's executor: takes the available messages.
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

    /// Called instead of deliver() by a receiver that cannot take any message.
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

    /// Called when the receiver has ended and may be started again: closes with `reason`, and answers the requests that
    /// were not received with it.
    ///
    /// Preconditions: no receive is pending.
    void retire(error_code reason)
    {
        close(reason, closing::by_receiver);
        const drop_scope scope(reason);
        // Outside the lock, because destructors of messages are user code.
        ring_.clear();
    }

    /// Reverts retire(). A mailbox that its owner closed stays closed.
    void revive()
    {
        std::lock_guard lock(mutex_);
        if (closing_ != closing::by_receiver)
            return;
        closing_ = closing::none;
        ring_.reopen();
    }

    /// Called when the owner is destroyed: closes, and destroys the messages that were not received.
    void abandon()
    {
        close();
        async_op_list finished;
        {
            std::lock_guard lock(mutex_);
            abandoned_ = true;
            receiver_.move_all(finished);
        }
        finished.post_all();
        // Outside the lock, because destructors of messages are user code.
        ring_.clear();
    }

    void shutdown(async_op_list& out) noexcept override
    {
        std::lock_guard lock(mutex_);
        shut_down_ = true;
        senders_waiting_.store(0, std::memory_order_seq_cst);
        senders_.move_all(out);
        receiver_.move_all(out);
        // No receive can follow.
        ring_.close();
        executor_.let_go(out);
    }

private:
    enum class closing : std::uint8_t { none, by_receiver, by_owner };

    void close(error_code reason, closing by)
    {
        async_op_list refused;
        async_op_list finished;
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
        // If it was reopened meanwhile: it was closed when the sender checked.
        return closing_ == closing::none ? error_code(errc::closed) : reason_;
    }

    void admit(std::unique_lock<std::mutex> lock)
    {
        async_op_list settled;
        bool wake = false;
        while (async_op_base* front = senders_.front()) {
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
        async_op_list woken;
        {
            std::lock_guard lock(mutex_);
            // A cancelled receive leaves its sleep mark set, so the message that triggers this call may not be the next
            // one to receive.
            if (ring_.ready())
                receiver_.move_all(woken);
        }
        woken.post_all();
    }

    held_executor executor_;
    ring<M> ring_;
    // Null: dropped replies are answered at once.
    std::unique_ptr<dropped_replies> dropped_;
    // True while a receive is waiting or on its way to its handler: nothing else may consume meanwhile.
    std::atomic<bool> receiving_{false};
    alignas(cache_line) std::atomic<std::size_t> senders_waiting_{0};
    alignas(cache_line) std::mutex mutex_;
    wait_list senders_;
    wait_list receiver_; // at most one
    error_code reason_;
    closing closing_ = closing::none;
    bool shut_down_ = false;
    bool abandoned_ = false;
};

} // namespace coaccel::detail

#endif
