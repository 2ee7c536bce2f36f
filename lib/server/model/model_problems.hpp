#ifndef COACCEL_SERVER_MODEL_MODEL_PROBLEMS_HPP
#define COACCEL_SERVER_MODEL_MODEL_PROBLEMS_HPP

#include "server/protocol/in_quotes.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/log.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace coaccel::server {

inline void log_problem(std::string_view what, const std::exception& e) noexcept
{
    try {
        detail::log(log_level::error, "models: " + std::string(what) + ": " + e.what());
    } catch (const std::exception&) {
        detail::log(log_level::error, what);
    }
}

inline error_code stopped(const std::string& name)
{
    return detail::op_error(errc::actor_stopped, "model", {in_quotes(name), ": the server is stopping"});
}

/// What a client is told about a load that has failed: errc::start_failed if the reason is the model, and otherwise the
/// error, after which the same load may succeed.
inline errc cause_of(const error_code& ec) noexcept
{
    const bool elsewhere =
        ec == fault::busy || ec == fault::stopped || ec == errc::device_failed || ec == errc::device_lost;
    return elsewhere ? errc_of(ec) : errc::start_failed;
}

} // namespace coaccel::server

#endif
