#include "server/http/connection.hpp"

#include "server/http/connection_handlers.hpp"

#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace coaccel::server {
namespace {

namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t header_piece = 4096;
constexpr std::size_t body_piece = 64 * 1024;
// What is read while a request runs: a client may send the next ones, but not without limit.
constexpr std::size_t most_pipelined = 16 * 1024;
// What an idle connection keeps.
constexpr std::size_t most_idle_bytes = 4096;
constexpr std::size_t most_discarded = 1 << 20;
constexpr auto never = std::numeric_limits<connection::clock::rep>::max();

unsigned status_of_problem(const error_code& ec) noexcept
{
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow)
        return 431;
    return ec == http::error::body_limit ? 413 : 400;
}

} // namespace

connection::connection(std::shared_ptr<server_core> core, tcp::socket socket)
    : core_(std::move(core)), socket_(std::move(socket)), deadline_(never),
      idle_since_(clock::now().time_since_epoch().count())
{}

connection::~connection()
{
    error_code ignored;
    socket_.close(ignored);
    release_body();
    core_->remove(*this);
}

void connection::start()
{
    error_code ec;
    socket_.non_blocking(true, ec);
    socket_.set_option(tcp::no_delay(true), ec);
    if (core_->log()) {
        const auto peer = socket_.remote_endpoint(ec);
        client_ = ec ? "-" : peer.address().to_string();
    }
    go_idle();
    read();
}

void connection::enter(phase p, std::chrono::nanoseconds limit) noexcept
{
    phase_ = p;
    const auto now = clock::now();
    const bool limited = limit.count() > 0 && limit < std::chrono::hours(24 * 365);
    limited_ = limited;
    transfer_.begin(now, limit);
    deadline_.store(limited ? (now + limit).time_since_epoch().count() : never, std::memory_order_relaxed);
    idle_since_.store(p == phase::idle ? now.time_since_epoch().count() : never, std::memory_order_relaxed);
}

void connection::transferred(std::size_t bytes) noexcept
{
    transfer_.moved(clock::now(), bytes);
    if (limited_)
        deadline_.store(transfer_.deadline().time_since_epoch().count(), std::memory_order_relaxed);
}

void connection::go_idle()
{
    reader_.reset();
    tenant_ = nullptr;
    if (body_.capacity() > most_idle_bytes)
        release_body();
    if (infer_ && infer_->is_large())
        infer_.reset();
    enter(phase::idle, core_->options().limits.idle_timeout);
}

void connection::read()
{
    if (reading_ || read_is_over_ || phase_ == phase::closed)
        return;
    if ((phase_ == phase::running || phase_ == phase::writing) && buffer_.size() >= most_pipelined)
        return;
    const std::size_t size = phase_ == phase::body ? body_piece : header_piece;
    // The read may be pending for as long as the connection is idle.
    if (size == header_piece && buffer_.capacity() > 2 * header_piece)
        buffer_.release();
    const auto room = buffer_.prepare(size);
    reading_ = true;
    socket_.async_read_some(room, on_read{shared_from_this()});
}

void connection::read_ended(const error_code& ec, std::size_t bytes)
{
    reading_ = false;
    if (phase_ == phase::closed)
        return;
    if (ec) {
        read_is_over_ = true;
        return ec == asio::error::eof ? client_has_ended() : end(status_gone);
    }
    switch (phase_) {
    case phase::lingering: discarded_ += bytes; return discarded_ > most_discarded ? close() : read();
    case phase::running:
    case phase::writing: buffer_.commit(bytes); return read();
    case phase::body: transferred(bytes); break;
    default: break;
    }
    buffer_.commit(bytes);
    advance();
}

void connection::advance()
{
    if (advancing_)
        return;
    advancing_ = true;
    while (parse()) {
    }
    advancing_ = false;
    const bool waits_for_client = phase_ == phase::idle || phase_ == phase::header || phase_ == phase::body;
    if (read_is_over_ && waits_for_client)
        return close();
    read();
}

/// Whether there may be more to do.
bool connection::parse()
{
    if ((phase_ != phase::idle && phase_ != phase::header && phase_ != phase::body) || buffer_.size() == 0)
        return false;
    const auto& limits = core_->options().limits;
    if (!reader_) {
        reader_.emplace(head_, body_, static_cast<std::uint32_t>(limits.max_header_bytes), limits.max_body_bytes);
        header_seen_ = false;
        enter(phase::header, limits.header_timeout);
    }
    error_code ec;
    const std::size_t used = reader_->put(buffer_.data(), ec);
    buffer_.consume(used);
    if (ec && ec != http::error::need_more) {
        refuse(status_of_problem(ec), ec.message());
        return false;
    }
    if (!header_seen_ && reader_->is_header_done()) {
        header_seen_ = true;
        header_arrived();
        if (phase_ != phase::header && phase_ != phase::body)
            return false;
    }
    if (!body_fits()) {
        refuse(503, {});
        return false;
    }
    if (reader_->is_done()) {
        begin_request();
        return true;
    }
    // The parser has no limits for the extensions of chunks and for trailers, and uses only complete ones.
    if (header_seen_ && used == 0 && buffer_.size() > limits.max_header_bytes) {
        refuse(431, {});
        return false;
    }
    return !ec && used > 0;
}

/// Counts the memory of the body. False: there is no more for all bodies together.
bool connection::body_fits() noexcept
{
    const std::size_t now = body_.capacity() > most_idle_bytes ? body_.capacity() : 0;
    if (now <= body_bytes_)
        return true;
    const std::size_t more = now - body_bytes_;
    body_bytes_ = now;
    return core_->bodies.fetch_add(more, std::memory_order_relaxed) + more <=
           core_->options().limits.max_total_body_bytes;
}

void connection::release_body() noexcept
{
    std::string().swap(body_);
    core_->bodies.fetch_sub(std::exchange(body_bytes_, 0), std::memory_order_relaxed);
}

void connection::header_arrived()
{
    if (reader_->is_done())
        return;
    enter(phase::body, core_->options().limits.transfer_timeout);
    check_early();
    if (phase_ != phase::body)
        return;
    if (head_.expects_continue && head_.version >= 11)
        send_continue();
}

void connection::refuse(unsigned status, std::string_view message)
{
    must_close_ = true;
    began_ = clock::now();
    std::string text;
    switch (status) {
    case 413:
        text = "the body is longer than " + std::to_string(core_->options().limits.max_body_bytes) + " bytes";
        break;
    case 431:
        text = "the header is longer than " + std::to_string(core_->options().limits.max_header_bytes) + " bytes";
        break;
    case 503: {
        reply r = error_reply(status, "the bodies of all requests have reached max_total_body_bytes");
        r.retry_after = 1;
        release_body();
        return answer(std::move(r));
    }
    default: text = "not a valid HTTP request: " + std::string(message); break;
    }
    answer(error_reply(status, text));
}

void connection::client_has_ended()
{
    // It has closed the connection, or only its half of it and waits for the reply: TCP does not tell. The reply to a
    // client that has closed it is answered by a reset.
    if (phase_ == phase::running)
        return socket_.async_wait(tcp::socket::wait_error, on_reset{shared_from_this()});
    if (phase_ != phase::writing)
        close();
}

/// Closes the connection. The status is for the log, if a request has no reply yet.
void connection::end(unsigned status) noexcept
{
    if (phase_ == phase::closed)
        return;
    const bool has_request = phase_ == phase::running || phase_ == phase::writing;
    const bool inferring = phase_ == phase::running && infer_ && infer_->running;
    close();
    try {
        if (has_request) {
            core_->counters().gone.fetch_add(status == status_gone ? 1 : 0, std::memory_order_relaxed);
            record(status);
        }
    } catch (const std::exception&) {
        // There is no memory for the line of the log.
    }
    try {
        if (inferring)
            infer_->cancel.emit(asio::cancellation_type::terminal);
    } catch (const std::exception&) {
        // The inference ends by itself.
    }
}

void connection::close() noexcept
{
    enter(phase::closed, {});
    error_code ignored;
    socket_.close(ignored);
}

void connection::abandon_later() noexcept
{
    // Without memory, the next sweep tries again.
    if (!post([](connection& c) { c.end(status_stopped); }))
        deadline_.store(0, std::memory_order_relaxed);
}

void connection::end_if_idle_later() noexcept
{
    // Without memory, it ends when its time is up.
    (void)post([](connection& c) {
        // Not a close: a request that has arrived completely is still read and gets its reply.
        error_code ignored;
        if (c.phase_ == phase::idle || c.phase_ == phase::header || c.phase_ == phase::body)
            c.socket_.shutdown(tcp::socket::shutdown_receive, ignored);
    });
}

void connection::give_place_later() noexcept
{
    const bool posted = post([](connection& c) {
        if (c.phase_ == phase::closed)
            return;
        if (c.waits_for_request())
            c.close();
        else
            c.core_->keeps_place(c);
    });
    // The next sweep closes it.
    if (!posted)
        deadline_.store(0, std::memory_order_relaxed);
}

/// Whether no byte of a request has come, also not to the system.
bool connection::waits_for_request()
{
    error_code ec;
    return phase_ == phase::idle && (read_is_over_ || socket_.available(ec) == 0);
}

bool connection::is_late(clock::time_point now) const noexcept
{
    return now.time_since_epoch().count() >= deadline_.load(std::memory_order_relaxed);
}

void connection::check_deadline(clock::time_point now) noexcept
{
    if (!is_late(now))
        return;
    (void)post([](connection& c) {
        // A request may have arrived since then, and its handler may be the next one.
        if (c.is_late(clock::now()) && (c.phase_ != phase::idle || c.waits_for_request()))
            c.end(status_gone);
    });
}

std::optional<connection::clock::time_point> connection::idle_since() const noexcept
{
    const auto since = idle_since_.load(std::memory_order_relaxed);
    if (since == never)
        return std::nullopt;
    return clock::time_point(clock::duration(since));
}

} // namespace coaccel::server
