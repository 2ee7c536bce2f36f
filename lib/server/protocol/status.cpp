#include "server/protocol/status.hpp"

#include <boost/beast/http/status.hpp>

namespace coaccel::server {

failure_status status_of(const error_code& ec) noexcept
{
    if (ec == errc::queue_full)
        return {429, 1};
    if (ec == errc::deadline_exceeded)
        return {504, 0};
    // Only the request that ends its context, run alone, gets this; all others run again.
    if (ec == errc::context_lost)
        return {500, 0};
    if (ec == errc::device_failed || ec == errc::device_lost || ec == errc::device_stopped ||
        ec == errc::actor_stopped || ec == errc::plan_quarantined || ec == errc::out_of_memory)
        return {503, 5};
    if (ec == fault::caller)
        return {400, 0};
    if (ec == fault::busy)
        return {503, 1};
    if (ec == fault::stopped || ec == fault::device_lost)
        return {503, 5};
    return {500, 0};
}

std::string_view reason_of(unsigned status) noexcept
{
    const auto text = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
    return {text.data(), text.size()};
}

} // namespace coaccel::server
