#ifndef COACCEL_TELEMETRY_HTTP_ENDPOINT_HPP
#define COACCEL_TELEMETRY_HTTP_ENDPOINT_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/telemetry/detail/endpoint_ops.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace coaccel::telemetry {

/// The options of an http_endpoint.
struct http_endpoint_options {
    /// The IP address to listen on. By default only programs on this machine can connect.
    std::string address = "127.0.0.1";
    std::uint16_t port = 0; ///< The port; 0 lets the system choose one, which http_endpoint::port() tells.
    /// If it is not empty, requests must have the header field `Authorization: Bearer TOKEN`, except those for / and
    /// /healthz, which tell nothing about the program. The connection is not encrypted. It must consist of printable
    /// ASCII characters, without spaces. In a browser, the page asks for it, or takes it from the address if that ends
    /// with `#token=TOKEN`.
    ///
    /// Without a token on a loopback address, requests whose field `Host` is neither localhost nor an IP address are
    /// refused with status 421, so that a web page from elsewhere cannot read the metrics by means of DNS.
    std::string token;
    /// With this many, a further connection replaces the one that has waited longest for a request; if all have
    /// requests, it is closed at once.
    std::size_t max_connections = 64;
    std::size_t max_header_bytes = 8192; ///< A longer header is refused. At most 1 MiB.
    /// A longer body is refused; a body is otherwise ignored. Zero refuses every body. At most 1 MiB.
    std::size_t max_body_bytes = 1024;
    /// A connection is closed if the next request is not complete after this time.
    std::chrono::nanoseconds read_timeout = std::chrono::seconds(30);
    /// A connection is closed if the client has not taken a reply after this time. A request that the registry has not
    /// answered after this time gets status 503.
    std::chrono::nanoseconds write_timeout = std::chrono::seconds(10);
    /// What /trace returns, as JSON. Called on the endpoint's executor, by one thread at a time. If it is empty, there
    /// is no such path; if it throws, the status is 500.
    std::function<std::string()> trace;
};

/// A small HTTP server for the metrics of a registry.
///
/// | path | reply |
/// |---|---|
/// | /metrics | the metrics, as OpenMetrics or in the text format of Prometheus, as the client prefers |
/// | /healthz | 200 while the executor runs |
/// | /readyz | 200 if every added device is ready or busy, else 503 with the reasons |
/// | /debug/state | the devices and all samples, as JSON |
/// | /trace | the result of http_endpoint_options::trace |
/// | / | a page that shows the state live |
///
/// The destructor closes the endpoint and its connections; async_stop lets requests in progress end. The destructor
/// does not wait: the port is in use until the executor has run once more. To use the port again, wait for async_stop.
///
/// Requests that wait at the same time share one collection.
///
/// Exceptions: every function except port() throws std::bad_alloc if there is no memory.
/// Lifetimes: an endpoint may outlive its execution context. A moved-from endpoint can only be assigned to and
/// destroyed.
/// Thread safety: distinct objects from any thread; one object from one thread at a time.
class COACCEL_DECL http_endpoint {
public:
    using executor_type = asio::any_io_executor;

    /// Listens, and serves requests on the executor from then on.
    ///
    /// Errors: errc::invalid_option for an address that is not an IP address, a token with other characters, time
    /// limits that are not positive, other limits of zero except max_body_bytes, and limits above their maximum;
    /// errc::start_failed if the system refuses to listen, for example because the port is in use.
    static result<http_endpoint> start(executor_type ex, registry metrics, const http_endpoint_options& options = {});

    http_endpoint(http_endpoint&&) noexcept = default;
    http_endpoint& operator=(http_endpoint&& other) noexcept;
    ~http_endpoint();

    std::uint16_t port() const noexcept; ///< The port that it listens on.
    executor_type get_executor() const noexcept;

    /// Stops: refuses connections, closes those without a complete request, and lets the others have their replies.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: all connections are closed; soon, also for repeated calls.
    /// Executor: the handler's, or else the endpoint's.
    /// Cancellation: total, partial, terminal; ends the wait, not the stopping.
    /// Errors: operation_aborted.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_stop(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_endpoint_stop(server_), token);
    }

private:
    explicit http_endpoint(std::shared_ptr<detail::http_server> server) noexcept : server_(std::move(server)) {}

    std::shared_ptr<detail::http_server> server_;
};

} // namespace coaccel::telemetry

#endif
