#ifndef COACCEL_TELEMETRY_HTTP_SERVER_HPP
#define COACCEL_TELEMETRY_HTTP_SERVER_HPP

#include "telemetry/http/listener.hpp"
#include "telemetry/http/routes.hpp"

#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/telemetry/http_endpoint.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

namespace coaccel::detail {

class http_session;
struct shared_collection;

/// Accepts connections and keeps track of their sessions. All of them run on one strand: the work of an endpoint is
/// small, and nothing needs a lock.
class http_server final : public shutdown_hook,
                          public listening_server,
                          public std::enable_shared_from_this<http_server> {
public:
    http_server(asio::any_io_executor ex, telemetry::registry metrics, telemetry::http_endpoint_options options);
    ~http_server();

    error_code listen();
    void run();

    std::uint16_t port() const noexcept { return listener_.port(); }
    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }
    const telemetry::http_endpoint_options& options() const noexcept { return options_; }
    const telemetry::registry& metrics() const noexcept { return metrics_; }

    void stop(async_op_base& op);
    void cancel_stop(async_op_base& op);
    /// Closes everything at once.
    void abandon() noexcept;
    /// The result of a collection, from any thread.
    void collected(const std::shared_ptr<shared_collection>& c, error_code ec, telemetry::snapshot&& all) noexcept;

    void shutdown(async_op_list& out) noexcept override;

    const asio::any_io_executor& strand() const noexcept override { return strand_.get(); }
    http_listener& listener() noexcept override { return listener_; }
    void begin_session(asio::ip::tcp::socket socket) override;
    asio::any_io_executor session_executor() override { return strand_.get(); }

    // For sessions, on the strand.
    bool stopping() const noexcept { return stopping_; }
    void add(http_session& s) { sessions_.insert(&s); }
    void remove(http_session& s) noexcept;
    std::uint64_t next_number() noexcept { return ++last_number_; }
    /// False: the request was sent to a name that only DNS can have mapped to this machine.
    bool serves_host(std::string_view host) const noexcept { return !only_local_ || is_local_host(host); }
    /// Null: there was no result within the time limit, or the endpoint is closed.
    asio::awaitable<std::shared_ptr<const shared_collection>> collect();

private:
    enum class ending : std::uint8_t { graceful, abrupt };

    bool abandoned();

    // On the strand.
    bool close_longest_idle();
    void begin_stop(ending how);
    void complete_stops();

    held_executor executor_;
    held_executor strand_;
    const telemetry::registry metrics_;
    const telemetry::http_endpoint_options options_;
    /// Whether only programs on this machine are served, and without a token. A web page from elsewhere could then read
    /// everything through the user's browser, if its name were mapped to this machine.
    bool only_local_ = false;

    http_listener listener_;

    // Used on the strand only.
    std::set<http_session*> sessions_;
    /// The outstanding collection, or null.
    std::shared_ptr<shared_collection> collecting_;
    bool stopping_ = false;
    std::uint64_t last_number_ = 0;

    std::mutex mutex_;
    wait_list stops_;
    /// Waits from the start to the end. abandon() cancels it, which needs no memory.
    std::optional<asio::steady_timer> end_signal_;
    bool abandoned_ = false;
    bool shut_down_ = false;
};

} // namespace coaccel::detail

#endif
