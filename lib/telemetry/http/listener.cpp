#include "telemetry/http/listener.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace coaccel::detail {
namespace {

using asio::ip::tcp;

// Descriptors and memory may be there again soon. Without a pause the retries would keep a thread busy until then.
constexpr auto pause_time = std::chrono::milliseconds(50);

// How many connections are accepted before others on the strand have their turn.
constexpr int most_at_once = 16;

} // namespace

/// The handler of both waits, one of which is pending at a time.
struct http_listener::on_ready {
    using allocator_type = op_memory_allocator<void>;

    std::shared_ptr<listening_server> server;

    allocator_type get_allocator() const noexcept { return allocator_type(server->listener().memory_); }

    void operator()(const error_code& ec) const
    {
        if (ec != asio::error::operation_aborted)
            server->listener().ready(server);
    }
};

error_code http_listener::open(const asio::any_io_executor& ex, const tcp::endpoint& where)
{
    error_code ec;
    acceptor_.emplace(ex);
    acceptor_->open(where.protocol(), ec);
    if (!ec)
        acceptor_->set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec)
        acceptor_->bind(where, ec);
    if (!ec)
        acceptor_->listen(asio::socket_base::max_listen_connections, ec);
    if (!ec)
        acceptor_->non_blocking(true, ec);
    if (!ec)
        port_ = acceptor_->local_endpoint(ec).port();
    pause_.emplace(ex);
    return ec;
}

void http_listener::start(const std::shared_ptr<listening_server>& server)
{
    arm(server, wait::connection);
}

void http_listener::close() noexcept
{
    const std::lock_guard lock(mutex_);
    if (!acceptor_)
        return;
    error_code ignored;
    acceptor_->close(ignored);
    pause_->cancel();
}

void http_listener::shutdown() noexcept
{
    const std::lock_guard lock(mutex_);
    acceptor_.reset();
    pause_.reset();
}

void http_listener::arm(const std::shared_ptr<listening_server>& server, wait what)
{
    const std::lock_guard lock(mutex_);
    if (!acceptor_ || !acceptor_->is_open())
        return;
    if (what == wait::connection)
        return acceptor_->async_wait(tcp::acceptor::wait_read, on_ready{server});
    pause_->expires_after(pause_time);
    pause_->async_wait(on_ready{server});
}

void http_listener::try_later(const std::shared_ptr<listening_server>& server) noexcept
{
    // A timer may need memory for its place in the queue. The wait for a connection, which is there, needs none on an
    // io_context, so that other handlers have their turn before the next try.
    for (wait what = wait::pause;; what = wait::connection) {
        try {
            return arm(server, what);
        } catch (const std::exception&) {
            std::this_thread::sleep_for(pause_time);
        }
    }
}

void http_listener::ready(const std::shared_ptr<listening_server>& server) noexcept
{
    try {
        asio::post(server->strand(), [server] { server->listener().accept_some(server); });
    } catch (const std::exception&) {
        try_later(server);
    }
}

void http_listener::accept_some(const std::shared_ptr<listening_server>& server) noexcept
{
    try {
        error_code ec;
        for (int i = 0; i < most_at_once && !ec; ++i)
            ec = accept_one(*server);
        // A client that has gone before it was accepted is no reason to wait.
        if (!ec || ec == asio::error::would_block || ec == asio::error::connection_aborted)
            return arm(server, wait::connection);
        if (ec == asio::error::no_descriptors || ec == boost::system::errc::too_many_files_open_in_system)
            server->descriptors_needed();
    } catch (const std::exception&) {
        // The connection is closed.
    }
    try_later(server);
}

error_code http_listener::accept_one(listening_server& server)
{
    error_code ec;
    std::optional<tcp::socket> socket;
    {
        const std::lock_guard lock(mutex_);
        if (!acceptor_ || !acceptor_->is_open())
            return asio::error::would_block;
        socket.emplace(acceptor_->accept(server.session_executor(), ec));
    }
    if (!ec)
        server.begin_session(std::move(*socket));
    return ec;
}

} // namespace coaccel::detail
