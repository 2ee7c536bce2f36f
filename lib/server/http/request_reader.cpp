#include "server/http/request_reader.hpp"

#include "server/protocol/in_quotes.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace coaccel::server {
namespace {

namespace http = boost::beast::http;

// More is reserved when it arrives: a header alone must not cost memory.
constexpr std::uint64_t most_reserved = 64 * 1024;

std::string_view text_of(boost::beast::string_view s) noexcept
{
    return {s.data(), s.size()};
}

bool read_number(std::string_view text, std::uint64_t& value) noexcept
{
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc() && read.ptr == end;
}

bool is_name(std::string_view given, std::string_view lower_case) noexcept
{
    return std::ranges::equal(given, lower_case, {},
                              [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
}

} // namespace

request_reader::request_reader(request_head& head, std::string& body, std::uint32_t max_header_bytes,
                               std::uint64_t max_body_bytes)
    : head_(head), body_(body)
{
    head_.clear();
    body_.clear();
    header_limit(max_header_bytes);
    body_limit(max_body_bytes);
    eager(true);
}

void request_reader::on_request_impl(http::verb, text method, text target, int version, error_type&)
{
    head_.method = text_of(method);
    head_.target = text_of(target);
    head_.version = version;
    // As clients send it to a proxy: the address of the server before the path.
    constexpr std::string_view scheme = "http://";
    if (head_.target.size() < scheme.size() ||
        !is_name(std::string_view(head_.target).substr(0, scheme.size()), scheme))
        return;
    const auto path = std::min(head_.target.find_first_of("/?", scheme.size()), head_.target.size());
    head_.host = head_.target.substr(scheme.size(), path - scheme.size());
    head_.target.erase(0, path);
    if (!head_.target.starts_with('/'))
        head_.target.insert(0, 1, '/');
    absolute_ = true;
}

void request_reader::on_field_impl(http::field name, text name_text, text value, error_type& ec)
{
    // The trailer of a chunked body must not replace what the header says.
    if (header_done_)
        return;
    switch (name) {
    case http::field::host:
        // The address in an absolute target is stronger.
        if (!absolute_)
            head_.host = text_of(value);
        return;
    case http::field::transfer_encoding:
        // Beast takes another coding for none, and the body for the next request.
        if (!is_name(text_of(value), "chunked"))
            ec = http::error::bad_transfer_encoding;
        return;
    case http::field::authorization: head_.authorization = text_of(value); return;
    case http::field::origin: head_.origin = text_of(value); return;
    case http::field::accept: head_.accept.append(head_.accept.empty() ? "" : ",").append(text_of(value)); return;
    case http::field::expect: head_.expects_continue = is_name(text_of(value), "100-continue"); return;
    case http::field::content_encoding: head_.encoded = !value.empty() && !is_name(text_of(value), "identity"); return;
    case http::field::unknown: break;
    default: return;
    }
    const auto field = text_of(name_text);
    std::uint64_t number = 0;
    if (is_name(field, "inference-header-content-length")) {
        if (!read_number(text_of(value), number))
            head_.problem = "Inference-Header-Content-Length is " + in_quotes(text_of(value)) + ", expected a number";
        head_.json_bytes = number;
    } else if (is_name(field, "x-api-key")) {
        head_.api_key = text_of(value);
    } else if (is_name(field, "x-request-timeout-ms")) {
        if (!read_number(text_of(value), number))
            head_.problem = "X-Request-Timeout-Ms is " + in_quotes(text_of(value)) + ", expected a number";
        head_.timeout = std::chrono::milliseconds(std::min<std::uint64_t>(number, std::uint64_t(1) << 40));
    }
}

void request_reader::on_body_init_impl(const length_type& length, error_type&)
{
    if (length)
        body_.reserve(static_cast<std::size_t>(std::min(*length, most_reserved)));
}

std::size_t request_reader::on_body_impl(text piece, error_type&)
{
    body_.append(piece.data(), piece.size());
    return piece.size();
}

std::size_t request_reader::on_chunk_body_impl(std::uint64_t, text piece, error_type&)
{
    body_.append(piece.data(), piece.size());
    return piece.size();
}

} // namespace coaccel::server
