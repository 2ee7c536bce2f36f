#ifndef COACCEL_SERVE_DETAIL_BATCHED_OP_HPP
#define COACCEL_SERVE_DETAIL_BATCHED_OP_HPP

#include <coaccel/core/detail/block_pool.hpp>
#include <coaccel/core/detail/executor_work.hpp>
#include <coaccel/core/detail/post_with.hpp>
#include <coaccel/serve/detail/batch_request.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>

#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel::detail {

/// Whether a handler with this executor runs on the same threads as one with the executor of the batcher.
template <class HandlerExecutor>
bool is_same_executor(const HandlerExecutor& its, const asio::any_io_executor& batchers) noexcept
{
    if constexpr (std::is_same_v<HandlerExecutor, asio::any_io_executor>) {
        return its == batchers;
    } else if constexpr (is_context_executor<HandlerExecutor>) {
        const auto* target = batchers.target<HandlerExecutor>();
        return target && *target == its;
    } else {
        return false;
    }
}

/// A request to a batcher together with its handler, in memory from the handler's allocator. As with handler_op, memory
/// is allocated only in the initiating call.
///
/// Unlike a handler_op it is not outstanding work of the batcher's executor: the batcher has one guard for all its
/// requests. So a request whose handler runs on that executor touches no count that all threads share, and copies no
/// executor.
template <class Base, class Handler>
class batched_op final : public Base {
    using handler_executor = asio::associated_executor_t<Handler, asio::any_io_executor>;
    using base_allocator = asio::associated_allocator_t<Handler, block_allocator<void>>;
    using allocator_type = typename std::allocator_traits<base_allocator>::template rebind_alloc<batched_op>;
    using traits = std::allocator_traits<allocator_type>;

public:
    /// `home`: the executor of the batcher. It exists until the request has been completed or destroyed.
    template <class... Args>
    static batched_op* create(Handler handler, const asio::any_io_executor& home, Args&&... args)
    {
        allocator_type alloc(asio::get_associated_allocator(handler, block_allocator<void>()));
        deallocate_guard guard{alloc, traits::allocate(alloc, 1)};
        ::new (static_cast<void*>(guard.memory)) batched_op(std::move(handler), home, std::forward<Args>(args)...);
        return std::exchange(guard.memory, nullptr);
    }

    /// As handler_op::on_cancel.
    template <class Canceller>
    void on_cancel(Canceller canceller)
    {
        try {
            asio::get_associated_cancellation_slot(handler_).template emplace<Canceller>(std::move(canceller));
        } catch (...) {
            this->destroy();
            throw;
        }
    }

    void post() override
    {
        resumption later(*this);
        if (!elsewhere_)
            return post_with(home_, room_, std::move(later));
        const auto& ex = elsewhere_->get_executor();
        if constexpr (asio::can_require<handler_executor, asio::execution::blocking_t::never_t>::value)
            post_with(ex, room_, std::move(later));
        else // a completion-only executor can only dispatch, so post through the batcher's executor first
            asio::post(home_, asio::bind_executor(ex, std::move(later)));
    }

    /// `context` is that of the batcher, or null.
    bool resumes_on(const asio::execution_context* context) const noexcept override
    {
        return context && (!elsewhere_ || detail::context_of(elsewhere_->get_executor()) == context);
    }

    void resume() override
    {
        auto slot = asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
            slot.clear();
        auto arguments = this->take();
        Handler handler(std::move(handler_));
        [[maybe_unused]] const auto work = std::move(elsewhere_);
        release_memory(handler);
        std::apply([&handler](auto&... args) { std::move(handler)(std::move(args)...); }, arguments);
    }

    void destroy() noexcept override
    {
        // The handler may own the memory resource behind its allocator, so it is moved out before the memory is
        // released.
        Handler handler(std::move(handler_));
        [[maybe_unused]] const auto work = std::move(elsewhere_);
        release_memory(handler);
    }

private:
    struct deallocate_guard {
        allocator_type& alloc;
        batched_op* memory;

        ~deallocate_guard()
        {
            if (memory)
                traits::deallocate(alloc, memory, 1);
        }
    };

    template <class... Args>
    explicit batched_op(Handler&& handler, const asio::any_io_executor& home, Args&&... args)
        : Base(std::forward<Args>(args)...), home_(home), elsewhere_(work_elsewhere(handler, home)),
          handler_(std::move(handler))
    {}

    ~batched_op() = default;

    static std::optional<executor_work<handler_executor>> work_elsewhere(const Handler& handler,
                                                                         const asio::any_io_executor& home)
    {
        const auto& its = asio::get_associated_executor(handler, home);
        if (is_same_executor(its, home))
            return std::nullopt;
        return executor_work<handler_executor>(its);
    }

    void release_memory(const Handler& handler) noexcept
    {
        allocator_type alloc(asio::get_associated_allocator(handler, block_allocator<void>()));
        this->~batched_op();
        traits::deallocate(alloc, this, 1);
    }

    const asio::any_io_executor& home_;
    /// Empty: the handler runs on `home_`.
    std::optional<executor_work<handler_executor>> elsewhere_;
    // Declared after the members whose construction may throw, so that the handler then stays with the caller.
    Handler handler_;
    post_room room_;
};

} // namespace coaccel::detail

#endif
