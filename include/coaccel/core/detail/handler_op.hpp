#ifndef COACCEL_CORE_DETAIL_HANDLER_OP_HPP
#define COACCEL_CORE_DETAIL_HANDLER_OP_HPP

#include <coaccel/core/detail/async_op.hpp>
#include <coaccel/core/detail/block_pool.hpp>
#include <coaccel/core/detail/executor_work.hpp>
#include <coaccel/core/detail/post_with.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/post.hpp>

#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel::detail {

/// Whether the handler of a request can be called before the request ends; see handler_op.
template <class Base>
inline constexpr bool is_detachable = requires { requires Base::detachable; };

/// Whether the memory of the operation comes from our own pool. Memory from the handler's own allocator must be
/// released before the handler is called.
template <class Handler>
inline constexpr bool has_no_allocator =
    std::is_same_v<asio::associated_allocator_t<Handler, block_allocator<void>>, block_allocator<void>>;

/// The base of a handler_op whose arguments are set by another object.
template <class Arguments>
class reply_op : public async_op_base {
public:
    void set(Arguments&& arguments) { arguments_ = std::move(arguments); }
    Arguments take() { return std::move(arguments_); }

protected:
    ~reply_op() = default;

private:
    Arguments arguments_{};
};

/// A pending operation together with its handler, in memory from the handler's allocator. Memory is allocated only
/// here, in the initiating call, which may throw; completion needs none.
///
/// Base derives from async_op_base and has `take()`, which returns the handler's arguments as a tuple. It is called on
/// the handler's executor just before the handler.
///
/// The handler of a `detachable` Base can be called before the operation ends: the handler then moves to a separate
/// operation. The memory of this operation may then outlive the call of the handler, so this is possible only if the
/// handler has no associated allocator.
template <class Base, class Handler, class Executor>
class handler_op final : public Base {
    using handler_executor = asio::associated_executor_t<Handler, Executor>;
    using base_allocator = asio::associated_allocator_t<Handler, block_allocator<void>>;
    using allocator_type = typename std::allocator_traits<base_allocator>::template rebind_alloc<handler_op>;
    using traits = std::allocator_traits<allocator_type>;

    static constexpr bool detaches = is_detachable<Base> && has_no_allocator<Handler>;

public:
    template <class... Args>
    static handler_op* create(Handler handler, const Executor& ex, Args&&... args)
    {
        return create_from(handler, ex, std::forward<Args>(args)...);
    }

    /// The same; if it throws, the handler stays with the caller.
    template <class... Args>
    static handler_op* create_from(Handler& handler, const Executor& ex, Args&&... args)
    {
        allocator_type alloc(asio::get_associated_allocator(handler, block_allocator<void>()));
        deallocate_guard guard{alloc, traits::allocate(alloc, 1)};
        ::new (static_cast<void*>(guard.memory)) handler_op(std::move(handler), ex, std::forward<Args>(args)...);
        return std::exchange(guard.memory, nullptr);
    }

    /// Installs `canceller` before any other thread can see the operation, so that nothing races with the slot. If
    /// there is no memory for it, this throws std::bad_alloc, and the operation is destroyed.
    template <class Canceller>
    void on_cancel(Canceller canceller)
    {
        auto slot = asio::get_associated_cancellation_slot(handler_);
        if (!slot.is_connected())
            return;
        try {
            slot.template emplace<Canceller>(std::move(canceller));
        } catch (...) {
            this->destroy();
            throw;
        }
    }

    void post() override
    {
        const auto& ex = handler_work_.get_executor();
        resumption later(*this);
        if constexpr (asio::can_require<handler_executor, asio::execution::blocking_t::never_t>::value)
            post_with(ex, room_, std::move(later));
        else // a completion-only executor can only dispatch, so post through the I/O executor first
            asio::post(io_work_->get_executor(), asio::bind_executor(ex, std::move(later)));
    }

    bool resumes_on(const asio::execution_context* context) const noexcept override
    {
        return context && detail::context_of(handler_work_.get_executor()) == context;
    }

    async_op_base* detach(error_code ec) noexcept override
    {
        if constexpr (detaches) {
            using arguments = decltype(this->take());
            using answer_op = handler_op<reply_op<arguments>, Handler, Executor>;
            try {
                auto* answer = answer_op::create_from(handler_, io_executor());
                arguments early{};
                std::get<0>(early) = ec;
                answer->set(std::move(early));
                // The answer has its own outstanding work.
                [[maybe_unused]] const auto handler_work = std::move(handler_work_);
                [[maybe_unused]] const auto io_work = std::move(io_work_);
                return answer;
            } catch (const std::bad_alloc&) {
                return nullptr;
            }
        } else {
            return Base::detach(ec);
        }
    }

    void resume() override
    {
        auto slot = asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
            slot.clear();
        auto arguments = this->take();
        Handler handler(std::move(handler_));
        [[maybe_unused]] auto handler_work = std::move(handler_work_);
        auto io_work = std::move(io_work_);
        release_memory(handler);
        // As soon as a handler that runs elsewhere (use_future) is called, the caller may destroy the I/O executor's
        // execution context.
        io_work.reset();
        std::apply([&handler](auto&... args) { std::move(handler)(std::move(args)...); }, arguments);
    }

    void destroy() noexcept override
    {
        if constexpr (detaches) {
            // The moved-from handler is destroyed in place, not moved again.
            if (this->answered) {
                this->~handler_op();
                return block_allocator<handler_op>().deallocate(this, 1);
            }
        }
        // The handler may own the memory resource behind its allocator, so it is moved out before the memory is
        // released.
        Handler handler(std::move(handler_));
        [[maybe_unused]] auto handler_work = std::move(handler_work_);
        [[maybe_unused]] auto io_work = std::move(io_work_);
        release_memory(handler);
    }

private:
    struct deallocate_guard {
        allocator_type& alloc;
        handler_op* memory;

        ~deallocate_guard()
        {
            if (memory)
                traits::deallocate(alloc, memory, 1);
        }
    };

    template <class... Args>
    explicit handler_op(Handler&& handler, const Executor& ex, Args&&... args)
        : Base(std::forward<Args>(args)...), handler_work_(asio::get_associated_executor(handler, ex)),
          io_work_(work_beside_the_handlers(handler, ex)), handler_(std::move(handler))
    {
        if constexpr (detaches)
            this->uses_callers_memory = false;
    }

    Executor io_executor() const noexcept
    {
        if constexpr (std::is_same_v<handler_executor, Executor>)
            return io_work_ ? io_work_->get_executor() : handler_work_.get_executor();
        else
            return io_work_->get_executor();
    }

    static std::optional<executor_work<Executor>> work_beside_the_handlers(const Handler& handler, const Executor& ex)
    {
        if constexpr (std::is_same_v<handler_executor, Executor>) {
            if (asio::get_associated_executor(handler, ex) == ex)
                return std::nullopt;
        }
        return executor_work<Executor>(ex);
    }

    ~handler_op() = default;

    void release_memory(const Handler& handler) noexcept
    {
        allocator_type alloc(asio::get_associated_allocator(handler, block_allocator<void>()));
        this->~handler_op();
        traits::deallocate(alloc, this, 1);
    }

    executor_work<handler_executor> handler_work_;
    /// Empty: handler_work_ is work on the same executor.
    std::optional<executor_work<Executor>> io_work_;
    // Declared after the members whose construction may throw, so that the handler then stays with the caller.
    Handler handler_;
    post_room room_;
};

/// The function in a cancellation slot: cancels one operation if the state still exists.
template <class State, class Op>
struct canceller {
    std::weak_ptr<State> state;
    Op* op;

    void operator()(asio::cancellation_type type)
    {
        constexpr auto honoured =
            asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
        if ((type & honoured) == asio::cancellation_type::none)
            return;
        if (auto s = state.lock())
            s->cancel(*op);
    }
};

} // namespace coaccel::detail

#endif
