#ifndef COACCEL_DEVICE_DETAIL_DEVICE_ACCESS_HPP
#define COACCEL_DEVICE_DETAIL_DEVICE_ACCESS_HPP

#include <coaccel/core/buffer.hpp>
#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/detail/request.hpp>
#include <coaccel/device/detail/detached_request.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>

#include <memory>

namespace coaccel::detail {

class device_core;
using core_ptr = std::shared_ptr<device_core>;

/// The executor of a device; the system executor if there is no device.
COACCEL_DECL asio::any_io_executor executor_of(const core_ptr& core) noexcept;

/// Hands a request to its device. Without a device it completes with errc::invalid_argument.
COACCEL_DECL void submit(const core_ptr& core, request& r);

COACCEL_DECL void cancel(const core_ptr& core, std::uint64_t cancel_id, asio::cancellation_type type);
COACCEL_DECL std::uint64_t next_cancel_id() noexcept;

/// Created before the memory that it will own, so that releasing the memory allocates nothing.
COACCEL_DECL std::shared_ptr<buffer_owner> make_buffer_owner(const core_ptr& core);

/// The function in a cancellation slot. The request may be destroyed when it is called, so it refers to it by an ID.
struct device_canceller {
    std::weak_ptr<device_core> core;
    std::uint64_t id;

    void operator()(asio::cancellation_type type) const
    {
        constexpr auto honoured =
            asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
        if ((type & honoured) == asio::cancellation_type::none)
            return;
        if (auto c = core.lock())
            cancel(c, id, type);
    }
};

/// Starts a call of a device; Request turns the arguments of the call into ops.
template <class Request>
struct initiate_request {
    using executor_type = asio::any_io_executor;

    core_ptr core;

    executor_type get_executor() const noexcept { return executor_of(core); }

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const
    {
        const bool cancellable = asio::get_associated_cancellation_slot(handler).is_connected();
        if constexpr (is_detachable<Request> && !has_no_allocator<std::decay_t<Handler>>) {
            using request_type = detached_request<Request>;
            using op_type =
                handler_op<reply_op<typename request_type::arguments>, std::decay_t<Handler>, executor_type>;
            std::unique_ptr<request_type, destroyer> r(request_type::create(core, static_cast<Args&&>(args)...));
            auto* answer = op_type::create(static_cast<Handler&&>(handler), get_executor());
            allow_cancellation(*r, *answer, cancellable);
            r->attach(*answer);
            submit(core, *r.release());
        } else {
            using op_type = handler_op<Request, std::decay_t<Handler>, executor_type>;
            auto* r =
                op_type::create(static_cast<Handler&&>(handler), get_executor(), core, static_cast<Args&&>(args)...);
            allow_cancellation(*r, *r, cancellable);
            submit(core, *r);
        }
    }

private:
    struct destroyer {
        void operator()(request* r) const noexcept { r->destroy(); }
    };

    template <class Op>
    void allow_cancellation(request& r, Op& with_handler, bool cancellable) const
    {
        if (!cancellable)
            return;
        r.cancel_id = next_cancel_id();
        with_handler.on_cancel(device_canceller{core, r.cancel_id});
    }
};

} // namespace coaccel::detail

#endif
