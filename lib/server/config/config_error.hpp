#ifndef COACCEL_SERVER_CONFIG_CONFIG_ERROR_HPP
#define COACCEL_SERVER_CONFIG_CONFIG_ERROR_HPP

#include <coaccel/core/config.hpp>

#include <cstddef>
#include <string>

namespace coaccel::server {

/// Something wrong in a configuration.
struct config_error {
    std::string where;     ///< The file, or "command line".
    std::size_t line = 0;  ///< The line in the file, counted from 1; 0: the whole file or the command line.
    std::string what;      ///< The key and its value, or the line; empty: the whole file.
    std::string message{}; ///< What is wrong, and what would be right.

    /// "FILE:LINE: KEY = VALUE: MESSAGE", as one line without control characters. Long values are shortened.
    COACCEL_DECL std::string text() const;

    bool operator==(const config_error&) const = default;
};

} // namespace coaccel::server

#endif
