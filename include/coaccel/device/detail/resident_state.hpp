#ifndef COACCEL_DEVICE_DETAIL_RESIDENT_STATE_HPP
#define COACCEL_DEVICE_DETAIL_RESIDENT_STATE_HPP

#include <coaccel/detail/pending_op.hpp>
#include <coaccel/detail/shutdown_hook.hpp>
#include <coaccel/device/device.hpp>
#include <coaccel/device/with_retry.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace coaccel::detail {

template <class T>
class get_waiter : public pending {
public:
    std::tuple<error_code, ref<T>> take() noexcept { return {ec, value}; }

    ref<T> value;

protected:
    ~get_waiter() = default;
};

/// The loader of what is kept on the host.
template <class T>
struct upload_copy {
    std::shared_ptr<const std::vector<T>> elements;

    asio::awaitable<result<buffer<T>>> operator()(device gpu) const { return upload(std::move(gpu), elements); }

    static asio::awaitable<result<buffer<T>>> upload(device gpu, std::shared_ptr<const std::vector<T>> elements)
    {
        co_return co_await gpu.with({.retry = retry::idempotent}).async_upload(*elements);
    }
};

/// Whether a buffer of this generation can be used on a device that stands like this.
inline bool is_current(const any_ref& buffer, const device_status& status) noexcept
{
    // While a context is being replaced its generation is still the published one, but its buffers are gone.
    const bool runs = status.state == device_state::ready || status.state == device_state::busy;
    return runs && buffer.size != 0 && buffer.generation == status.generation;
}

/// What the copies of a resident share: the buffer, and behind a mutex those who wait for it.
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
        std::unique_lock lock(mutex_);
        if (shut_down_) {
            lock.unlock();
            return op.destroy();
        }
        if (is_current(buffer_.ref().raw(), gpu_.status())) {
            op.value = buffer_.ref();
            lock.unlock();
            return op.post();
        }
        waiters_.add(op);
        if (std::exchange(loading_, true))
            return;
        lock.unlock();
        try {
            asio::co_spawn(executor_.get(), load(this->shared_from_this()), asio::detached);
        } catch (...) {
            loaded(error_code(asio::error::no_memory));
        }
    }

    void cancel(pending& op)
    {
        {
            std::lock_guard lock(mutex_);
            // After a shutdown the operation is gone, so the flag is looked at first.
            if (shut_down_ || !op.waiting())
                return;
            waiters_.remove(op);
            op.ec = asio::error::operation_aborted;
        }
        op.post();
    }

    void shutdown(pending_list& out) noexcept override
    {
        std::lock_guard lock(mutex_);
        shut_down_ = true;
        waiters_.move_all(out);
        executor_.let_go(out);
    }

private:
    static asio::awaitable<void> load(std::shared_ptr<resident_state> self)
    {
        result<buffer<T>> made;
        try {
            auto loading = with_retry(retry_policy{}, std::ref(self->loader_), self->gpu_);
            made = co_await std::move(loading);
        } catch (const std::exception& e) {
            made = note_error(errc::user_exception, std::string("the loader of a resident threw: ") + e.what());
        } catch (...) {
            made = errc::user_exception;
        }
        self->loaded(std::move(made));
    }

    void loaded(result<buffer<T>> made)
    {
        const error_code ec = made ? error_code() : made.error();
        pending_list ready;
        ref<T> current;
        // The old buffer goes back outside the lock.
        buffer<T> old;
        {
            std::lock_guard lock(mutex_);
            loading_ = false;
            waiters_.move_all(ready);
            if (!ec)
                old = std::exchange(buffer_, std::move(made).assume_value());
            current = buffer_.ref();
        }
        while (pending* op = ready.pop_front()) {
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
    wait_list waiters_;
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
    void operator()(Handler&& handler) const
    {
        using op_type = pending_op<get_waiter<T>, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(std::forward<Handler>(handler), state_->executor());
        op->on_cancel(canceller<resident_state<T>, pending>{state_, op});
        state_->get(*op);
    }

private:
    std::shared_ptr<resident_state<T>> state_;
};

} // namespace coaccel::detail

#endif
