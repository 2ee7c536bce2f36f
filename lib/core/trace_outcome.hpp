#ifndef COACCEL_CORE_TRACE_OUTCOME_HPP
#define COACCEL_CORE_TRACE_OUTCOME_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/core/trace.hpp>

#include <boost/asio/error.hpp>

namespace coaccel::detail {

inline trace_outcome outcome_of(const error_code& ec) noexcept
{
    if (!ec)
        return trace_outcome::succeeded;
    if (ec == boost::asio::error::operation_aborted)
        return trace_outcome::cancelled;
    if (ec == errc::deadline_exceeded)
        return trace_outcome::expired;
    return is_context_lost(ec) || is_device_lost(ec) ? trace_outcome::lost : trace_outcome::failed;
}

} // namespace coaccel::detail

#endif
