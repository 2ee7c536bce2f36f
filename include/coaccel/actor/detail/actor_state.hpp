#ifndef COACCEL_ACTOR_DETAIL_ACTOR_STATE_HPP
#define COACCEL_ACTOR_DETAIL_ACTOR_STATE_HPP

#include <coaccel/actor/actor_stats.hpp>
#include <coaccel/actor/mailbox.hpp>
#include <coaccel/actor/supervised.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace coaccel::detail {

template <class M>
class behaviour {
public:
    virtual ~behaviour() = default;
    virtual asio::awaitable<error_code> handle(M message) = 0;
};

template <class M, class Callable>
class callable_behaviour final : public behaviour<M> {
public:
    explicit callable_behaviour(Callable callable) : callable_(std::move(callable)) {}

    asio::awaitable<error_code> handle(M message) override { return callable_(std::move(message)); }

private:
    Callable callable_;
};

/// State shared by the actor handle and its running coroutine. Used on the strand only, except the mailbox.
template <class M>
class actor_state : public std::enable_shared_from_this<actor_state<M>> {
public:
    using strand_type = asio::strand<asio::any_io_executor>;
    using factory_type = std::function<std::unique_ptr<behaviour<M>>()>;

    actor_state(strand_type strand, mailbox<M> inbound, mailbox<char> verdicts, factory_type factory)
        : strand_(std::move(strand)), mailbox_(std::move(inbound)), verdicts_(std::move(verdicts)),
          factory_(std::move(factory))
    {
        mailbox_.state()->hold_dropped_replies();
    }

    mailbox<M>& inbound() noexcept { return mailbox_; }

    /// From any thread.
    actor_stats stats() const noexcept
    {
        return {messages_.load(std::memory_order_relaxed), failures_.load(std::memory_order_relaxed),
                starts_.load(std::memory_order_relaxed)};
    }

    void start(child_listener listener)
    {
        asio::post(strand_, [self = this->shared_from_this(), l = std::move(listener)]() mutable {
            self->stopping_ = false;
            count(self->starts_);
            self->mailbox_.state()->revive();
            while (self->verdicts_.try_receive()) {
            }
            // A separate statement: function arguments are evaluated in any order, and `l` is moved below.
            auto body = run(self, l);
            asio::co_spawn(self->strand_, std::move(body),
                           asio::bind_cancellation_slot(self->cancel_.slot(), ended{self, std::move(l)}));
        });
    }

    void resume()
    {
        char go{};
        // One slot is enough: each failure waits for one resume().
        static_cast<void>(verdicts_.try_send(std::move(go)));
    }

    void stop()
    {
        asio::post(strand_, [self = this->shared_from_this()] {
            self->stopping_ = true;
            self->cancel_.emit(asio::cancellation_type::terminal);
        });
    }

    void retire(error_code reason)
    {
        const error_code why = stopped_because(reason);
        mailbox_.state()->retire(why);
        asio::post(strand_, [self = this->shared_from_this(), why] {
            const drop_scope scope(why);
            self->inbox_.clear();
        });
    }

private:
    // The behaviour of one incarnation. Replies that it still holds are answered with the reason of its end.
    struct incarnation {
        std::unique_ptr<behaviour<M>> current;
        error_code end;

        ~incarnation()
        {
            if (!end)
                return;
            const drop_scope scope(end);
            current.reset();
        }
    };

    // The behaviour is already destroyed when this is called, so two incarnations never exist at once.
    struct ended {
        std::shared_ptr<actor_state> self;
        child_listener listener;

        void operator()(std::exception_ptr) const { listener(child_event::stopped, {}); }
    };

    static asio::awaitable<void> run(std::shared_ptr<actor_state> self, child_listener listener)
    {
        incarnation mine;
        for (unsigned turn = 1; !self->stopping_; ++turn) {
            error_code failure;
            if (!mine.current)
                failure = self->make(mine.current);
            else if (self->inbox_.empty())
                failure = co_await self->next_message();
            else
                failure = co_await self->handle_one(*mine.current);
            if (self->stopping_ || failure == errc::closed)
                break;
            if (failure) {
                count(self->failures_);
                mine.end = failed_in_hand(failure);
                listener(child_event::failed, failure);
                auto verdict = co_await self->verdicts_.async_receive();
                if (!verdict)
                    break;
                mine.end = {};
            }
            // A behaviour that never suspends must not block the executor.
            if (turn % 64 == 0)
                co_await asio::post(self->strand_, asio::use_awaitable);
        }
        if (self->stopping_ && !mine.end)
            mine.end = errc::actor_stopped;
    }

    /// Only the strand counts, so this need not be an atomic addition.
    static void count(std::atomic<std::uint64_t>& n) noexcept
    {
        n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    error_code make(std::unique_ptr<behaviour<M>>& current)
    {
        try {
            current = factory_();
            return {};
        } catch (...) {
            return thrown_failure(std::current_exception());
        }
    }

    asio::awaitable<error_code> next_message()
    {
        auto ready = mailbox_.try_receive();
        if (ready) {
            inbox_.push_back(std::move(ready).assume_value());
            co_return error_code();
        }
        if (ready.error() == errc::closed)
            co_return ready.error();
        auto count = co_await mailbox_.async_receive_batch(inbox_, 1);
        co_return count ? error_code() : count.error();
    }

    asio::awaitable<error_code> handle_one(behaviour<M>& current)
    {
        M message(std::move(inbox_.back()));
        inbox_.pop_back();
        count(messages_);
        dropped_replies& dropped = *mailbox_.state()->dropped();
        dropped.begin();
        error_code failure;
        try {
            auto handled = current.handle(std::move(message));
            failure = co_await std::move(handled);
            // Only the mailbox or the supervisor ends an actor; a behaviour that returns errc::closed has failed.
            if (failure == errc::closed)
                failure = failed_in_hand(failure);
        } catch (...) {
            failure = thrown_failure(std::current_exception());
        }
        if (!failure)
            dropped.end({});
        else
            dropped.end(stopping_ ? error_code(errc::actor_stopped) : failed_in_hand(failure));
        co_return failure;
    }

    strand_type strand_;
    mailbox<M> mailbox_;
    mailbox<char> verdicts_;
    factory_type factory_;
    // At most one message, received but not yet handled. It outlives the incarnation that received it.
    std::vector<M> inbox_;
    asio::cancellation_signal cancel_;
    bool stopping_ = false;
    std::atomic<std::uint64_t> messages_{0};
    std::atomic<std::uint64_t> failures_{0};
    std::atomic<std::uint64_t> starts_{0};
};

} // namespace coaccel::detail

#endif
