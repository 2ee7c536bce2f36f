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

} // namespace coaccel::server

#endif
