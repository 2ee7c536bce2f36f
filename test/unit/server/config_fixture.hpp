#ifndef COACCEL_TEST_UNIT_SERVER_CONFIG_FIXTURE_HPP
#define COACCEL_TEST_UNIT_SERVER_CONFIG_FIXTURE_HPP

#include "server/config/config_keys.hpp"
#include "server/config/server_config.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace test {

inline coaccel::server::server_config config_of(std::string_view text)
{
    return coaccel::server::make_config(text, "conf/server.conf", {});
}

/// The messages of all errors, one per line.
inline std::string messages(const std::vector<coaccel::server::config_error>& errors)
{
    std::string all;
    for (const auto& e : errors)
        all += e.text() + '\n';
    return all;
}

/// The only error of a configuration.
inline std::string error_of(std::string_view text)
{
    const auto config = config_of(text);
    CHECK_MESSAGE(config.errors.size() == 1, messages(config.errors));
    return config.errors.empty() ? std::string() : config.errors.front().text();
}

} // namespace test

#endif
