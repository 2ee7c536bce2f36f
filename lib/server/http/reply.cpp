#include "server/http/reply.hpp"

#include "server/protocol/documents.hpp"
#include "server/protocol/json_text.hpp"
#include "server/protocol/status.hpp"

namespace coaccel::server {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value)
{
    out.append(name).append(": ").append(value).append("\r\n");
}

void append_field(std::string& out, std::string_view name, std::uint64_t value)
{
    out.append(name).append(": ");
    append_integer_text(out, value);
    out += "\r\n";
}

} // namespace

reply error_reply(unsigned status, std::string_view message)
{
    reply r;
    r.status = status;
    r.body = error_document(message);
    return r;
}

reply failure_reply(const error_code& ec)
{
    const auto s = status_of(ec);
    reply r = error_reply(s.status, ec.message());
    r.retry_after = s.retry_after;
    return r;
}

void append_head(std::string& out, const reply& r, int http_version, after_reply then, std::size_t body_bytes,
                 std::optional<std::size_t> json_bytes)
{
    out += "HTTP/1.1 ";
    append_integer_text(out, r.status);
    out.append(" ").append(reason_of(r.status)).append("\r\n");
    append_field(out, "Content-Type", json_bytes ? std::string_view("application/octet-stream") : r.content_type);
    append_field(out, "Content-Length", body_bytes);
    if (json_bytes)
        append_field(out, "Inference-Header-Content-Length", *json_bytes);
    if (then == after_reply::close)
        append_field(out, "Connection", "close");
    else if (http_version < 11)
        append_field(out, "Connection", "keep-alive");
    if (r.retry_after > 0)
        append_field(out, "Retry-After", static_cast<std::uint64_t>(r.retry_after));
    if (!r.allow.empty())
        append_field(out, "Allow", r.allow);
    if (!r.authenticate.empty())
        append_field(out, "WWW-Authenticate", r.authenticate);
    if (!r.policy.empty())
        append_field(out, "Content-Security-Policy", r.policy);
    if (r.page) {
        append_field(out, "Cache-Control", "no-store");
        append_field(out, "X-Content-Type-Options", "nosniff");
        append_field(out, "Referrer-Policy", "no-referrer");
    }
    out += "\r\n";
}

} // namespace coaccel::server
