#ifndef COACCEL_SERVER_SERVER_HPP
#define COACCEL_SERVER_SERVER_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/device/shutdown.hpp>
#include <coaccel/server/server_options.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace coaccel::server {

class server;
class server_core;

} // namespace coaccel::server

namespace coaccel::detail {

using server_created = asio::any_completion_handler<void(error_code, server::server)>;
using server_stopped = asio::any_completion_handler<void(error_code)>;

COACCEL_DECL void create_server(const asio::any_io_executor& ex, server::server_options options,
                                telemetry::registry metrics, server_created handler);
COACCEL_DECL void stop_server(const std::shared_ptr<server::server_core>& core, shutdown mode, server_stopped handler);
COACCEL_DECL asio::any_io_executor executor_of(const std::shared_ptr<server::server_core>& core) noexcept;

struct initiate_create_server {
    using executor_type = asio::any_io_executor;

    executor_type executor;

    executor_type get_executor() const noexcept { return executor; }

    template <class Handler>
    void operator()(Handler&& handler, server::server_options options, telemetry::registry metrics) const
    {
        create_server(executor, std::move(options), std::move(metrics),
                      server_created(static_cast<Handler&&>(handler)));
    }
};

struct initiate_stop_server {
    using executor_type = asio::any_io_executor;

    std::shared_ptr<server::server_core> core;

    executor_type get_executor() const noexcept { return executor_of(core); }

    template <class Handler>
    void operator()(Handler&& handler, shutdown mode) const
    {
        stop_server(core, mode, server_stopped(static_cast<Handler&&>(handler)));
    }
};

} // namespace coaccel::detail

namespace coaccel::server {

/// An inference server: it loads the plan files of a folder, and answers requests of the Open Inference Protocol over
/// HTTP. The program `coaccel-serve` is this object with a configuration file.
///
///     server_options options;
///     options.model_folder = "models";
///     const telemetry::registry metrics(executor);
///     BOOST_OUTCOME_CO_TRY(auto serving, co_await server::async_create(executor, options, metrics));
///     ...
///     BOOST_OUTCOME_CO_TRYV(co_await serving.async_shutdown(shutdown::drain));
///
/// A move-only handle. The destructor closes the server without waiting for requests; async_shutdown lets them end.
///
/// Executor: handlers run on their associated executor, or else on the server's. If server_options::io_threads is 1,
/// only one thread may run the executor; it saves the synchronisation of connections.
/// Exceptions: an initiating call throws std::bad_alloc; nothing has been started then.
/// Lifetimes: the server, and the registry, must be destroyed before their execution context.
/// Thread safety: distinct objects from any thread; const functions of one object from any thread.
class COACCEL_DECL server {
public:
    using executor_type = asio::any_io_executor;

    server() noexcept = default;                ///< No server.
    server(server&&) noexcept = default;        ///< The other one is empty afterwards.
    server& operator=(server&& other) noexcept; ///< Closes the server that it had.
    ~server();                                  ///< Closes the server.

    /// Listens, makes the devices, and loads the models of the folder. Requests are answered from the moment at which
    /// the devices exist; until the models are loaded, `/v2/health/ready` has status 503. A model that cannot be loaded
    /// is no error: the log and the index of the repository say why.
    ///
    /// The metrics of the server, its models and devices are in the registry until the server has stopped; the server
    /// shows all of the registry at `/metrics` and on the live page.
    ///
    /// Completion signature: void(error_code, server).
    /// Completes when: each model has been loaded, or has failed.
    /// Cancellation: all types. What has been started is stopped, without waiting for models that are being loaded.
    /// Errors: errc::invalid_option; errc::start_failed if the system refuses to listen, for example because the port
    /// is in use; errc::file_failed if the access log cannot be opened; those of device::async_create;
    /// asio::error::operation_aborted.
    template <class Executor, asio::completion_token_for<void(error_code, server)> Token = default_token>
    static auto async_create(const Executor& ex, server_options options, telemetry::registry metrics,
                             Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, server)>(detail::initiate_create_server{ex}, token,
                                                                     std::move(options), std::move(metrics));
    }

    /// Stops: refuses connections, and with `shutdown::drain` lets requests that have arrived have their replies, for
    /// at most server_options::drain_timeout. Then it closes all connections, and shuts models and devices down.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: everything has ended, also for repeated calls. A later `abandon` overrides an earlier `drain`.
    /// Errors: errc::invalid_argument for an empty object.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_shutdown(shutdown mode, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_stop_server{core_}, token, mode);
    }

    std::uint16_t port() const noexcept; ///< The port that it listens on; 0 for an empty object.
    bool ready() const;                  ///< Whether models have been loaded and a device works.
    executor_type get_executor() const noexcept { return detail::executor_of(core_); } ///< Its executor.
    explicit operator bool() const noexcept { return core_ != nullptr; }               ///< False for an empty object.

    /// Called by async_create.
    explicit server(std::shared_ptr<server_core> core) noexcept : core_(std::move(core)) {}

private:
    std::shared_ptr<server_core> core_;
};

} // namespace coaccel::server

#endif
