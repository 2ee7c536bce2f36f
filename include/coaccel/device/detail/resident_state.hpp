#ifndef COACCEL_DEVICE_DETAIL_RESIDENT_STATE_HPP
#define COACCEL_DEVICE_DETAIL_RESIDENT_STATE_HPP

#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/core/exec_options.hpp>
#include <coaccel/device/device.hpp>
#include <coaccel/device/with_retry.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/set.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// An operation that waits until its deadline at the latest.
class bounded_op : public async_op_base {
public:
    using time_point = exec_options::clock::time_point;

    explicit bounded_op(time_point when) noexcept : deadline(when) {}

    const time_point deadline;
    /// Used by the bounded_wait_list.
    set_hook by_deadline;

protected:
    ~bounded_op() = default;
};

/// A wait_list that knows the deadlines of its operations.
class bounded_wait_list {
public:
    using time_point = bounded_op::time_point;

    void add(bounded_op& op) noexcept
    {
        ops_.add(op);
        if (op.deadline != exec_options::no_deadline)
            deadlines_.insert(op);
    }

    /// Moves one operation to `out`, with this error.
    void end(bounded_op& op, error_code ec, async_op_list& out) noexcept
    {
        ops_.remove(op);
        if (op.by_deadline.is_linked())
            deadlines_.erase(deadlines_.iterator_to(op));
        op.ec = ec;
        out.push_back(op);
    }

    /// Moves the operations whose deadline is not after `when` to `out`, the earliest first, with this error.
    void end_due(time_point when, error_code ec, async_op_list& out) noexcept
    {
        while (!deadlines_.empty() && earliest() <= when)
            end(*deadlines_.begin(), ec, out);
    }

    void move_all(async_op_list& out) noexcept
    {
        deadlines_.clear();
        ops_.move_all(out);
    }

    /// The earliest deadline, or no_deadline.
    time_point earliest() const noexcept
    {
        return deadlines_.empty() ? exec_options::no_deadline : deadlines_.begin()->deadline;
    }

private:
    struct earlier {
        bool operator()(const bounded_op& a, const bounded_op& b) const noexcept { return a.deadline < b.deadline; }
    };
    using deadline_set =
        boost::intrusive::multiset<bounded_op,
                                   boost::intrusive::member_hook<bounded_op, set_hook, &bounded_op::by_deadline>,
                                   boost::intrusive::compare<earlier>, boost::intrusive::constant_time_size<false>>;

    wait_list ops_;
    // Declared after the list, which destroys its operations: they are unlinked first.
    deadline_set deadlines_;
};

template <class T>
class get_waiter : public bounded_op {
public:
    using bounded_op::bounded_op;

    std::tuple<error_code, ref<T>> take() noexcept { return {ec, value}; }

    ref<T> value;

protected:
    ~get_waiter() = default;
};

/// The loader of elements that are kept on the host.
template <class T>
struct upload_copy {
    std::shared_ptr<const std::vector<T>> elements;

    asio::awaitable<result<buffer<T>>> operator()(device gpu) const { return upload(std::move(gpu), elements); }

    static asio::awaitable<result<buffer<T>>> upload(device gpu, std::shared_ptr<const std::vector<T>> elements)
    {
        if (elements->size() * sizeof(T) >= least_shared_bytes) {
            auto sharing = share(gpu, elements);
            auto shared = co_await std::move(sharing);
            // Otherwise each context has a copy of its own, or the upload has the same error.
            if (shared)
                co_return shared;
        }
        co_return co_await gpu.with({.retry = retry::idempotent}).async_upload(*elements);
    }

    static auto share(const device& gpu, const std::shared_ptr<const std::vector<T>>& elements)
    {
        default_token token;
        return asio::async_initiate<default_token, void(error_code, buffer<T>)>(
            initiate_request<shared_elements_request<T>>{gpu.core()}, token, elements);
    }
};

/// Whether this buffer can be used on a device with this status.
inline bool is_current(const any_ref& buffer, const device_status& status) noexcept
{
    // Memory that workers share belongs to no generation. Ops that use it wait while the device rebuilds.
    if (buffer.size != 0 && buffer.generation == 0)
        return status.state != device_state::failed && status.state != device_state::stopping &&
               status.state != device_state::stopped;
    // While a context is being replaced, its generation is still the published one, but its buffers are invalid.
    const bool runs = status.state == device_state::ready || status.state == device_state::busy;
    return runs && buffer.size != 0 && buffer.generation == status.generation;
}

/// The shared state of the copies of a resident: the buffer and the operations that wait for it, behind a mutex.
template <class T>
class resident_state final : public shutdown_hook, public std::enable_shared_from_this<resident_state<T>> {
public:
    using loader_type = std::function<asio::awaitable<result<buffer<T>>>(device)>;

    resident_state(device gpu, loader_type loader)
        : executor_(gpu.get_executor()), gpu_(std::move(gpu)), loader_(std::move(loader))
    {
        enlist(executor_.get());
    }

    ~resident_state() { withdraw(); }

    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }
    const device& gpu() const noexcept { return gpu_; }

    void get(get_waiter<T>& op)
    {
        async_op_list ended;
        std::unique_lock lock(mutex_);
        if (shut_down_) {
            lock.unlock();
            return op.destroy();
        }
        if (op.deadline != exec_options::no_deadline && op.deadline <= clock::now()) {
            lock.unlock();
            op.ec = errc::deadline_exceeded;
            return op.post();
        }
        if (is_current(buffer_.ref().raw(), gpu_.status())) {
            op.value = buffer_.ref();
            lock.unlock();
            return op.post();
        }
        waiters_.add(op);
        set_timer(ended);
        const bool starts_loading = op.waiting() && !std::exchange(loading_, true);
        lock.unlock();
        ended.post_all();
        if (!starts_loading)
            return;
        try {
            asio::co_spawn(executor_.get(), load(this->shared_from_this()), asio::detached);
        } catch (...) {
            loaded(error_code(asio::error::no_memory));
        }
    }

    void cancel(bounded_op& op)
    {
        async_op_list ended;
        {
            std::lock_guard lock(mutex_);
            // After a shutdown the operation is destroyed, so the flag is checked first.
            if (shut_down_ || !op.waiting())
                return;
            waiters_.end(op, asio::error::operation_aborted, ended);
            set_timer(ended);
        }
        ended.post_all();
    }

    void shutdown(async_op_list& out) noexcept override
    {
        std::lock_guard lock(mutex_);
        shut_down_ = true;
        waiters_.move_all(out);
        // The timer must not outlive its context; this state may.
        timer_.reset();
        timer_at_ = exec_options::no_deadline;
        executor_.let_go(out);
    }

private:
    using clock = exec_options::clock;

    /// Refers to no operation: it may run after the operation that it was set for has completed.
    struct expiry {
        std::weak_ptr<resident_state> state;

        void operator()(error_code ec) const
        {
            if (auto s = ec ? nullptr : state.lock())
                s->expire();
        }
    };

    void expire()
    {
        async_op_list ended;
        {
            std::lock_guard lock(mutex_);
            timer_at_ = exec_options::no_deadline;
            waiters_.end_due(clock::now(), errc::deadline_exceeded, ended);
            set_timer(ended);
        }
        ended.post_all();
    }

    /// Sets the timer to the earliest deadline. Without memory for it, the operations with a deadline move to `out`.
    void set_timer(async_op_list& out)
    {
        const auto when = waiters_.earliest();
        // A timer that expires too early only costs a call of expire(), so it is left alone. If there is no deadline,
        // it must be cancelled, because it keeps the executor running.
        if (when == timer_at_ || (when != exec_options::no_deadline && timer_at_ < when))
            return;
        timer_at_ = when;
        if (when == exec_options::no_deadline) {
            timer_->cancel();
            return;
        }
        try {
            if (!timer_)
                timer_.emplace(executor_.get());
            timer_->expires_at(when);
            timer_->async_wait(expiry{this->weak_from_this()});
        } catch (...) {
            timer_at_ = exec_options::no_deadline;
            waiters_.end_due(clock::time_point::max(), asio::error::no_memory, out);
        }
    }

    static asio::awaitable<void> load(std::shared_ptr<resident_state> self)
    {
        result<buffer<T>> made;
        try {
            auto loading = with_retry(retry_policy{}, std::ref(self->loader_), self->gpu_);
            made = co_await std::move(loading);
        } catch (const std::exception& e) {
            made = make_error_with_message(errc::user_exception,
                                           std::string("the loader of a resident threw: ") + e.what());
        } catch (...) {
            made = errc::user_exception;
        }
        self->loaded(std::move(made));
    }

    void loaded(result<buffer<T>> made)
    {
        const error_code ec = made ? error_code() : made.error();
        async_op_list ready;
        ref<T> current;
        // The old buffer is released outside the lock.
        buffer<T> old;
        {
            std::lock_guard lock(mutex_);
            loading_ = false;
            waiters_.move_all(ready);
            set_timer(ready);
            if (!ec)
                old = std::exchange(buffer_, std::move(made).assume_value());
            current = buffer_.ref();
        }
        while (async_op_base* op = ready.pop_front()) {
            auto& waiter = static_cast<get_waiter<T>&>(*op);
            waiter.ec = ec;
            waiter.value = ec ? ref<T>() : current;
            waiter.post();
        }
    }

    held_executor executor_;
    const device gpu_;
    loader_type loader_;

    std::mutex mutex_;
    buffer<T> buffer_;
    bounded_wait_list waiters_;
    /// Created with the first deadline.
    std::optional<asio::steady_timer> timer_;
    clock::time_point timer_at_ = exec_options::no_deadline;
    bool loading_ = false;
    bool shut_down_ = false;
};

template <class T>
class initiate_get {
public:
    using executor_type = asio::any_io_executor;

    explicit initiate_get(std::shared_ptr<resident_state<T>> state) noexcept : state_(std::move(state)) {}

    executor_type get_executor() const noexcept { return state_->executor(); }

    template <class Handler>
    void operator()(Handler&& handler, exec_options::clock::time_point deadline) const
    {
        using op_type = handler_op<get_waiter<T>, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(std::forward<Handler>(handler), state_->executor(), deadline);
        op->on_cancel(canceller<resident_state<T>, bounded_op>{state_, op});
        state_->get(*op);
    }

private:
    std::shared_ptr<resident_state<T>> state_;
};

} // namespace coaccel::detail

#endif
