#include "telemetry/http/server.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/telemetry/http_endpoint.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace coaccel::telemetry {
namespace {

error_code check(const http_endpoint_options& o)
{
    const auto zero = [](std::string_view field) {
        return detail::op_error(errc::invalid_option, "http_endpoint", {field, " is 0"});
    };
    // No client could send another one in a header field. The message must not contain the token.
    const auto bad = std::ranges::find_if(o.token, [](char c) { return c <= ' ' || c > '~'; });
    if (bad != o.token.end())
        return detail::op_error(errc::invalid_option, "http_endpoint",
                                {"token has a space, a control character or a byte outside ASCII at position ",
                                 static_cast<std::size_t>(bad - o.token.begin())});
    if (o.max_connections == 0)
        return zero("max_connections");
    if (o.max_header_bytes == 0)
        return zero("max_header_bytes");
    if (o.max_header_bytes > (1u << 20))
        return detail::op_error(errc::invalid_option, "http_endpoint",
                                {"max_header_bytes is ", o.max_header_bytes, "; it must be at most ", 1u << 20});
    if (o.max_body_bytes > (1u << 20))
        return detail::op_error(errc::invalid_option, "http_endpoint",
                                {"max_body_bytes is ", o.max_body_bytes, "; it must be at most ", 1u << 20});
    if (o.read_timeout <= std::chrono::nanoseconds::zero())
        return detail::op_error(errc::invalid_option, "http_endpoint",
                                {"read_timeout is ", o.read_timeout.count(), " ns; it must be positive"});
    if (o.write_timeout <= std::chrono::nanoseconds::zero())
        return detail::op_error(errc::invalid_option, "http_endpoint",
                                {"write_timeout is ", o.write_timeout.count(), " ns; it must be positive"});
    return {};
}

} // namespace

result<http_endpoint> http_endpoint::start(executor_type ex, registry metrics, const http_endpoint_options& options)
{
    if (const error_code ec = check(options))
        return ec;
    auto server = std::make_shared<detail::http_server>(std::move(ex), std::move(metrics), options);
    if (const error_code ec = server->listen())
        return ec;
    server->run();
    return http_endpoint(std::move(server));
}

http_endpoint& http_endpoint::operator=(http_endpoint&& other) noexcept
{
    if (this != &other) {
        const http_endpoint old(std::move(*this));
        server_ = std::move(other.server_);
    }
    return *this;
}

http_endpoint::~http_endpoint()
{
    if (server_)
        server_->abandon();
}

std::uint16_t http_endpoint::port() const noexcept
{
    return server_->port();
}

http_endpoint::executor_type http_endpoint::get_executor() const noexcept
{
    return server_->executor();
}

} // namespace coaccel::telemetry
