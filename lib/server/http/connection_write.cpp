#include "server/http/connection.hpp"
#include "server/http/connection_handlers.hpp"
#include "server/protocol/infer_response.hpp"

#include <boost/asio/buffer.hpp>

#include <utility>

namespace coaccel::server {
namespace {

// What the texts of a reply keep while the connection is idle.
constexpr std::size_t most_kept_bytes = 4096;

void consume(std::vector<asio::const_buffer>& parts, std::size_t bytes)
{
    std::size_t whole = 0;
    while (whole < parts.size() && bytes >= parts[whole].size())
        bytes -= parts[whole++].size();
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(whole));
    if (!parts.empty())
        parts.front() += bytes;
}

} // namespace

bool connection::keeps_open() const noexcept
{
    // A server that stops answers what has arrived.
    const bool goes_on = !core_->stopping() || buffer_.size() > 0;
    return !must_close_ && goes_on && reader_ && reader_->is_header_done() && reader_->keep_alive();
}

void connection::send_continue()
{
    constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
    // There is room for a few bytes in the system's buffer, unless the client takes nothing.
    error_code ignored;
    socket_.write_some(asio::buffer(text.data(), text.size()), ignored);
}

void connection::answer(reply r)
{
    if (phase_ == phase::closed)
        return;
    release_model();
    status_ = r.status;
    reply_bytes_ = r.body.size();
    must_close_ = !keeps_open();
    out_.clear();
    append_head(out_, r, head_.version, must_close_ ? after_reply::close : after_reply::keep, r.body.size());
    if (head_.method != "HEAD")
        out_ += r.body;
    parts_.assign(1, asio::buffer(out_));
    send();
}

void connection::answer_infer()
{
    const infer_exchange& e = *infer_;
    const model_signature& model = e.picked.version->signature;
    // The JSON first, because its length is in the header: it stays behind it in the same text.
    std::string& json = json_;
    json.clear();
    const response_parts parts = append_response(json, e.request.id, model, e.call);
    status_ = 200;
    reply_bytes_ = json.size() + parts.binary_bytes;
    must_close_ = !keeps_open();
    out_.clear();
    append_head(out_, reply(), head_.version, must_close_ ? after_reply::close : after_reply::keep, reply_bytes_,
                parts.json_bytes);
    parts_.clear();
    parts_.push_back(asio::buffer(out_));
    parts_.push_back(asio::buffer(json));
    for (const auto& a : e.call.answers)
        if (a.binary) {
            const run_range& range = e.call.output(a.output, model);
            parts_.push_back(asio::buffer(range.data, range.bytes()));
        }
    // A client that takes its reply slowly must not delay the unloading of the model. The reply does not refer to it.
    release_model();
    send();
}

void connection::send()
{
    enter(phase::writing, core_->options().limits.transfer_timeout);
    error_code ec;
    const std::size_t bytes = socket_.write_some(parts_, ec);
    if (ec == asio::error::would_block || ec == asio::error::try_again)
        ec = {};
    written(ec, bytes);
}

void connection::written(const error_code& ec, std::size_t bytes)
{
    if (phase_ == phase::closed)
        return;
    if (ec)
        return end(status_gone);
    consume(parts_, bytes);
    if (parts_.empty())
        return sent();
    transferred(bytes);
    socket_.async_write_some(parts_, on_written{shared_from_this()});
}

void connection::release_model() noexcept
{
    if (!infer_)
        return;
    infer_->picked = {};
    infer_->model.reset();
}

/// Counts the request, and adds it to the log.
void connection::record(unsigned status)
{
    const auto time = clock::now() - began_;
    core_->counters().ended(status, time);
    if (core_->log())
        core_->log()->add({client_, tenant_ && core_->clients().divided() ? std::string_view(*tenant_) : "",
                           head_.method, head_.target, status, body_.size(), reply_bytes_, time});
}

void connection::sent()
{
    record(status_);
    if (out_.capacity() > most_kept_bytes)
        std::string().swap(out_);
    if (json_.capacity() > most_kept_bytes)
        std::string().swap(json_);
    // A drain may have begun since the header of the reply was made. It does not wait for further requests.
    if (!must_close_ && (!core_->stopping() || buffer_.size() > 0)) {
        go_idle();
        return advance();
    }
    // A socket that is closed with unread data resets the connection, and the client may lose the reply.
    error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    if (read_is_over_)
        return close();
    enter(phase::lingering, std::chrono::seconds(1));
    discarded_ = buffer_.size();
    buffer_.consume(buffer_.size());
    read();
}

} // namespace coaccel::server
