#ifndef COACCEL_SERVER_HTTP_CONNECTION_HPP
#define COACCEL_SERVER_HTTP_CONNECTION_HPP

#include "server/http/infer_exchange.hpp"
#include "server/http/read_buffer.hpp"
#include "server/http/reply.hpp"
#include "server/http/request_head.hpp"
#include "server/http/request_reader.hpp"
#include "server/http/transfer_limit.hpp"
#include "server/protocol/route.hpp"
#include "server/server_core.hpp"
#include "telemetry/http/routes.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace coaccel::server {

/// One connection: reads requests and writes replies, in order, until the client or the server ends it.
///
/// It reads on while a request runs, so that it notices that the client has gone; further requests wait in its buffer.
/// All functions run on its executor, except those that say otherwise. Its pending operations keep it.
class connection final : public std::enable_shared_from_this<connection> {
public:
    using clock = server_core::clock;

    connection(std::shared_ptr<server_core> core, asio::ip::tcp::socket socket);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    void start();

    // From any thread.
    void abandon_later() noexcept;
    void end_if_idle_later() noexcept;
    /// Closes the connection for another one, if it still waits for a request then. Otherwise tells the core.
    void give_place_later() noexcept;
    /// Closes the connection if its time is up.
    void check_deadline(clock::time_point now) noexcept;
    /// Since when it waits for a request; none while it has one.
    std::optional<clock::time_point> idle_since() const noexcept;

    /// Whether another connection has its place. Guarded by the core's mutex.
    bool is_replaced = false;

    asio::any_io_executor executor() { return socket_.get_executor(); }

    /// Runs a handler of the connection. An exception, such as std::bad_alloc, ends only the connection.
    template <class Function>
    void guarded(Function handle) noexcept
    {
        try {
            handle();
        } catch (...) {
            end(status_failed);
        }
    }

    // Called when what a request waits for has ended.
    void entered(const error_code& ec, serve::permit turn);
    void inferred(const error_code& ec);
    void collected(const error_code& ec, const telemetry::snapshot& all);
    void answer(reply r);

private:
    enum class phase : std::uint8_t {
        idle,      ///< No byte of a request has come.
        header,    ///< A part of a header has come.
        body,      ///< The header has come, and a part of the body.
        running,   ///< The request is being answered.
        writing,   ///< The reply is being written.
        lingering, ///< The last reply was written; what the client still sends is ignored.
        closed,
    };

    // Statuses of requests without a reply, for the log and the counters.
    static constexpr unsigned status_gone = 499;
    static constexpr unsigned status_failed = 500;
    static constexpr unsigned status_stopped = 503;

    struct on_read;
    struct on_written;
    struct on_reset;

    // connection.cpp
    void read();
    void read_ended(const error_code& ec, std::size_t bytes);
    void advance();
    bool parse();
    void header_arrived();
    void refuse(unsigned status, std::string_view message);
    void go_idle();
    void client_has_ended();
    void end(unsigned status) noexcept;
    void close() noexcept;
    bool is_late(clock::time_point now) const noexcept;
    bool waits_for_request();
    template <class Function>
    bool post(Function function) noexcept;
    void enter(phase p, std::chrono::nanoseconds limit) noexcept;
    void transferred(std::size_t bytes) noexcept;
    bool body_fits() noexcept;
    void release_body() noexcept;

    // connection_write.cpp
    void answer_infer();
    void send();
    void written(const error_code& ec, std::size_t bytes);
    void sent();
    void record(unsigned status);
    void release_model() noexcept;
    void send_continue();
    bool keeps_open() const noexcept;

    // connection_requests.cpp
    void begin_request();
    void begin_infer(const route& where);
    void run_infer();
    void begin_telemetry();
    void control_repository(const route& where);
    void controlled(const error_code& ec);
    reply reply_to(const route& where);
    reply model_reply(const route& where);
    std::optional<reply> refusal(const route& where);
    std::optional<reply> without_right(const route& where);
    std::optional<reply> without_control();
    void check_early();

    const std::shared_ptr<server_core> core_;
    asio::ip::tcp::socket socket_;
    read_buffer buffer_;
    request_head head_;
    std::string body_;
    std::size_t body_bytes_ = 0; ///< What of it is counted in server_core::bodies.
    std::optional<request_reader> reader_;
    std::unique_ptr<infer_exchange> infer_;
    const std::string* tenant_ = nullptr;
    detail::http_route collecting_ = detail::http_route::unknown;
    std::string client_;

    std::string out_;  ///< The header of the reply, and its body if it has no tensors.
    std::string json_; ///< The JSON of an inference.
    std::vector<asio::const_buffer> parts_;
    unsigned status_ = 0;
    std::uint64_t reply_bytes_ = 0;
    clock::time_point began_{};

    phase phase_ = phase::idle;
    bool reading_ = false;
    bool read_is_over_ = false;
    bool header_seen_ = false;
    bool advancing_ = false;
    bool must_close_ = false;
    transfer_limit transfer_;
    bool limited_ = false;
    std::size_t discarded_ = 0;

    // Also read by other threads.
    std::atomic<clock::rep> deadline_;
    std::atomic<clock::rep> idle_since_;
};

} // namespace coaccel::server

#endif
