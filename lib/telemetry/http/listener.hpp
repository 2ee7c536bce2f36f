#ifndef COACCEL_TELEMETRY_HTTP_LISTENER_HPP
#define COACCEL_TELEMETRY_HTTP_LISTENER_HPP

#include "telemetry/http/op_memory.hpp"

#include <coaccel/core/error.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace coaccel::detail {

class http_listener;

/// What has a listener: a server. The listener and its pending operations keep it.
class listening_server {
public:
    /// Where connections are passed on, one at a time.
    virtual const asio::any_io_executor& strand() const noexcept = 0;
    virtual http_listener& listener() noexcept = 0;
    /// A connection was accepted. On the strand.
    virtual void begin_session(asio::ip::tcp::socket socket) = 0;
    /// The executor of the next connection's socket. On the strand.
    virtual asio::any_io_executor session_executor() = 0;
    /// A connection could not be accepted, because the process or the system has no descriptor left. On the strand.
    virtual void descriptors_needed() {}

protected:
    ~listening_server() = default;
};

/// Accepts the connections of a server. If there are no descriptors or no memory for a connection, it tries again a
/// little later, until it is closed.
///
/// Not a coroutine, and not on the strand of the server: suspending one and dispatching to a strand need memory, and
/// without it neither could try again. Only the connections themselves go to the strand. (A strand of Boost 1.81 whose
/// executor throws while it schedules the strand runs nothing afterwards; that one allocation cannot be avoided here.)
///
/// Thread safety: every function may be called from any thread.
class COACCEL_DECL http_listener {
public:
    /// Listens.
    error_code open(const asio::any_io_executor& ex, const asio::ip::tcp::endpoint& where);
    std::uint16_t port() const noexcept { return port_; }

    /// Passes connections to listening_server::begin_session, on the strand, from then on. What is pending keeps the
    /// server.
    void start(const std::shared_ptr<listening_server>& server);

    /// Accepts nothing more. Frees the port.
    void close() noexcept;

    /// The execution context is about to be destroyed.
    void shutdown() noexcept;

private:
    struct on_ready;

    enum class wait : std::uint8_t { connection, pause };

    void arm(const std::shared_ptr<listening_server>& server, wait what);
    void try_later(const std::shared_ptr<listening_server>& server) noexcept;
    void ready(const std::shared_ptr<listening_server>& server) noexcept;
    /// On the strand.
    void accept_some(const std::shared_ptr<listening_server>& server) noexcept;
    error_code accept_one(listening_server& server);

    std::mutex mutex_;
    op_memory memory_;
    std::optional<asio::ip::tcp::acceptor> acceptor_;
    std::optional<asio::steady_timer> pause_;
    std::uint16_t port_ = 0;
};

} // namespace coaccel::detail

#endif
