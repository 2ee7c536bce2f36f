#ifndef COACCEL_SERVER_SERVER_CORE_HPP
#define COACCEL_SERVER_SERVER_CORE_HPP

#include "server/http/access_log.hpp"
#include "server/http/tenants.hpp"
#include "server/model/model_store.hpp"
#include "server/server_counters.hpp"
#include "telemetry/http/listener.hpp"

#include <coaccel/device/shutdown.hpp>
#include <coaccel/server/server_options.hpp>
#include <coaccel/telemetry/snapshot.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace coaccel::server {

class connection;

/// A server: what connections share, and its life from start to stop.
///
/// Thread safety: any thread, unless a function says otherwise.
class server_core final : public detail::listening_server, public std::enable_shared_from_this<server_core> {
public:
    using clock = std::chrono::steady_clock;

    server_core(const asio::any_io_executor& ex, server_options options, telemetry::registry metrics);
    server_core(const server_core&) = delete;
    server_core& operator=(const server_core&) = delete;
    ~server_core();

    /// Listens, makes the devices and loads the models. After an error the server has stopped. On the strand.
    asio::awaitable<result<void>> start();
    /// Ends requests, then models and devices. On the strand. A further call waits for the first one; `abandon` ends a
    /// drain.
    asio::awaitable<void> stop(shutdown mode);
    /// Closes everything, without waiting for it.
    void abandon() noexcept;

    std::uint16_t port() const noexcept { return listener_.port(); }
    const asio::any_io_executor& executor() const noexcept { return executor_; }

    // For connections.
    const server_options& options() const noexcept { return options_; }
    const telemetry::registry& metrics() const noexcept { return metrics_; }
    const tenants& clients() const noexcept { return tenants_; }
    model_store& models() noexcept { return *store_; }
    access_log* log() noexcept { return log_.get(); }
    server_counters& counters() noexcept { return counters_; }
    bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
    /// False: the request was sent to a name that only DNS can have mapped to this machine.
    bool serves_host(std::string_view host) const noexcept;
    /// Whether only programs on this machine can connect.
    bool is_local() const noexcept { return is_local_; }
    /// The memory of the bodies of all requests.
    std::atomic<std::size_t> bodies{0};
    /// Whether models have been loaded, and a device can run them.
    bool ready() const;
    bool any_device_works() const;
    /// The state of the server's own devices; the registry may have others.
    std::vector<telemetry::device_sample> devices() const;
    void remove(connection& c) noexcept;
    /// A connection whose place another one has got must stay, because a request has arrived on it.
    void keeps_place(connection& c) noexcept;

    // As listening_server.
    const asio::any_io_executor& strand() const noexcept override { return strand_; }
    detail::http_listener& listener() noexcept override { return listener_; }
    void begin_session(asio::ip::tcp::socket socket) override;
    asio::any_io_executor session_executor() override;
    void descriptors_needed() override { (void)replace_longest_idle(); }

private:
    void limit_connections();
    error_code listen();
    asio::awaitable<result<void>> start_parts();
    asio::awaitable<result<void>> make_devices();
    asio::awaitable<void> close_late_connections();
    void revive_failed(clock::time_point now);
    asio::awaitable<void> stop_parts();
    asio::awaitable<void> wait_until_empty(clock::time_point limit, shutdown mode);
    asio::awaitable<void> stop_devices();
    bool is_full() const;
    bool replace_longest_idle();
    std::vector<std::shared_ptr<connection>> connections();
    std::size_t count() const;

    const asio::any_io_executor executor_;
    const asio::any_io_executor strand_;
    const server_options options_;
    const telemetry::registry metrics_;
    bool is_local_ = false;
    std::size_t max_connections_ = 0;
    server_counters counters_;
    tenants tenants_;
    std::unique_ptr<access_log> log_;
    std::shared_ptr<model_store> store_;
    detail::http_listener listener_;
    std::vector<telemetry::registration> registrations_;
    std::atomic<bool> loaded_{false};
    std::atomic<bool> stopping_{false};

    // Used on the strand only.
    asio::steady_timer sweep_;
    asio::steady_timer emptied_;
    asio::steady_timer stop_ended_;
    shutdown stop_mode_ = shutdown::drain;
    bool stop_runs_ = false;
    bool stopped_ = false;

    mutable std::mutex mutex_;
    std::unordered_set<connection*> connections_;
    /// How many of them give their place to others.
    std::size_t replaced_ = 0;
    struct named_device {
        std::string name;
        device made;
        /// When it is to be revived; none: it has not failed.
        std::optional<clock::time_point> revive_at;
    };
    std::vector<named_device> devices_;
};

} // namespace coaccel::server

#endif
