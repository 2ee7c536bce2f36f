#ifndef COACCEL_SERVER_CONFIG_CONFIG_KEYS_HPP
#define COACCEL_SERVER_CONFIG_CONFIG_KEYS_HPP

#include "server/config/config_lines.hpp"

#include <coaccel/server/server_options.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace coaccel::server {

/// How the value of a key is written.
enum class value_form : std::uint8_t {
    text,
    path, ///< In a file: relative to the folder of the file.
    log_path,
    token,
    listen,
    devices,
    whole, ///< int
    count, ///< std::uint32_t
    large, ///< std::uint64_t
    bytes,
    time,
    fraction,
    yes_no,
    versions,
    level,
};

/// The options that the keys of a section set.
struct config_target {
    server_options* server = nullptr; ///< For [server].
    model_options* model = nullptr;   ///< For [model NAME].
    tenant_limits* tenant = nullptr;  ///< For [tenant NAME].
};

/// A key of the configuration. One table is the source of the parser, of `--help` and of the page of documentation.
struct config_key {
    section_kind section;              ///< The section that it belongs to.
    std::string_view name;             ///< In the file; as a flag with hyphens instead of underscores.
    value_form form;                   ///< How its value is written.
    double least;                      ///< The least value of a number. Times are in seconds.
    double most;                       ///< The largest value of a number.
    void* (*at)(const config_target&); ///< The option. For value_form::listen and devices the server_options.
    std::string_view help;             ///< What it is, as one sentence or more.
};

/// All keys, by section.
std::span<const config_key> config_keys() noexcept;

/// The header of a section as the documentation writes it, such as "[model NAME]".
std::string_view section_header(section_kind section) noexcept;

/// The key with this name; null if there is none.
const config_key* find_key(section_kind section, std::string_view name) noexcept;

/// "unknown key", with the key that was probably meant, also one of another section.
std::string unknown_key(section_kind section, std::string_view name);

/// Sets the option. Returns what is wrong with the value; empty: nothing.
std::string set_value(const config_key& key, const config_target& target, std::string_view value);

/// The value of the option, as it is written in a file.
std::string value_text(const config_key& key, const config_target& target);

/// A value of the key `device`.
std::string device_text(const device_options& device);

/// What a value looks like, such as "a number of bytes, such as 4096, 64M or 2G, from 1024".
std::string expected_value(const config_key& key);

} // namespace coaccel::server

#endif
