#ifndef COACCEL_DEVICE_DETAIL_DETACHED_REQUEST_HPP
#define COACCEL_DEVICE_DETAIL_DETACHED_REQUEST_HPP

#include <coaccel/core/detail/block_pool.hpp>
#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/detail/request.hpp>

#include <memory>
#include <tuple>
#include <utility>

namespace coaccel::detail {

/// A request in memory separate from its handler. The handler can therefore be called, and its memory released, while
/// the device still uses the request. For requests that do not use the caller's memory and whose handler has an
/// allocator; without an allocator, a handler_op does the same in one block.
template <class Base>
class detached_request final : public Base {
public:
    using arguments = decltype(std::declval<Base&>().take());

    template <class... Args>
    static detached_request* create(Args&&... args)
    {
        block_allocator<detached_request> alloc;
        memory_guard guard{alloc.allocate(1)};
        ::new (static_cast<void*>(guard.memory)) detached_request(std::forward<Args>(args)...);
        return std::exchange(guard.memory, nullptr);
    }

    /// Sets the handler. Called once, before the request is submitted.
    void attach(reply_op<arguments>& handler) noexcept { handler_ = &handler; }

    async_op_base* detach(error_code ec) noexcept override
    {
        arguments early{};
        std::get<0>(early) = ec;
        handler_->set(std::move(early));
        return std::exchange(handler_, nullptr);
    }

    void post() override
    {
        if (auto* to = finish())
            to->post();
    }

    bool resumes_on(const asio::execution_context* context) const noexcept override
    {
        return handler_ && handler_->resumes_on(context);
    }

    void resume() override
    {
        if (auto* to = finish())
            to->resume();
    }

    void destroy() noexcept override
    {
        auto* handler = handler_;
        release_memory();
        if (handler)
            handler->destroy();
    }

private:
    struct memory_guard {
        detached_request* memory;

        ~memory_guard()
        {
            if (memory)
                block_allocator<detached_request>().deallocate(memory, 1);
        }
    };

    template <class... Args>
    explicit detached_request(Args&&... args) : Base(std::forward<Args>(args)...)
    {
        this->uses_callers_memory = false;
    }

    ~detached_request() = default;

    /// Passes the outcome to the handler and consumes the request; null if the handler was detached.
    async_op_base* finish()
    {
        auto* to = handler_;
        if (to)
            to->set(this->take());
        release_memory();
        return to;
    }

    void release_memory() noexcept
    {
        this->~detached_request();
        block_allocator<detached_request>().deallocate(this, 1);
    }

    reply_op<arguments>* handler_ = nullptr;
};

} // namespace coaccel::detail

#endif
