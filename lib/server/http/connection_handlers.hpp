#ifndef COACCEL_SERVER_HTTP_CONNECTION_HANDLERS_HPP
#define COACCEL_SERVER_HTTP_CONNECTION_HANDLERS_HPP

#include "server/http/connection.hpp"

#include <boost/asio/post.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace coaccel::server {

// The handlers of a connection's operations.

struct connection::on_read {
    std::shared_ptr<connection> self;

    void operator()(const error_code& ec, std::size_t bytes) const
    {
        self->guarded([&] { self->read_ended(ec, bytes); });
    }
};

struct connection::on_written {
    std::shared_ptr<connection> self;

    void operator()(const error_code& ec, std::size_t bytes) const
    {
        self->guarded([&] { self->written(ec, bytes); });
    }
};

struct connection::on_reset {
    std::shared_ptr<connection> self;

    void operator()(const error_code& ec) const
    {
        if (!ec)
            self->end(status_gone);
    }
};

/// Runs a function on the executor. False if there is no memory.
template <class Function>
bool connection::post(Function function) noexcept
{
    try {
        asio::post(socket_.get_executor(),
                   [self = shared_from_this(), function] { self->guarded([&] { function(*self); }); });
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

/// The base of handlers of other objects: on the executor of the connection, and cancelled with its request.
struct connection_handler {
    using executor_type = asio::any_io_executor;
    using cancellation_slot_type = asio::cancellation_slot;

    std::shared_ptr<connection> self;
    asio::cancellation_slot slot;

    executor_type get_executor() const noexcept { return self->executor(); }
    cancellation_slot_type get_cancellation_slot() const noexcept { return slot; }
};

struct on_inferred : connection_handler {
    void operator()(const error_code& ec) const
    {
        self->guarded([&] { self->inferred(ec); });
    }
};

struct on_entered : connection_handler {
    void operator()(const error_code& ec, serve::permit turn) const
    {
        self->guarded([&] { self->entered(ec, std::move(turn)); });
    }
};

struct on_collected : connection_handler {
    void operator()(const error_code& ec, const telemetry::snapshot& all) const
    {
        self->guarded([&] { self->collected(ec, all); });
    }
};

} // namespace coaccel::server

#endif
