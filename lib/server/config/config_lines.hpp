#ifndef COACCEL_SERVER_CONFIG_CONFIG_LINES_HPP
#define COACCEL_SERVER_CONFIG_CONFIG_LINES_HPP

#include "server/config/config_error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::server {

/// What a section of the configuration is about.
enum class section_kind : std::uint8_t { server, model, tenant };

/// A section, such as [model digits].
struct config_section {
    section_kind kind = section_kind::server; ///< What it is about.
    std::string name{};                       ///< Of the model or tenant; "*": all others. Empty for the server.
    std::size_t line = 0;                     ///< Of the header; 0: from the command line.
};

/// A key with its value.
struct config_entry {
    config_section section; ///< Where it is.
    std::string key;        ///< Not checked: any text without blanks at its ends.
    std::string value;      ///< Without the quotes.
    std::size_t line = 0;   ///< Counted from 1; 0: from the command line.
};

/// The lines of a configuration file.
struct config_lines {
    std::vector<config_section> sections; ///< In the order of the file.
    std::vector<config_entry> entries;    ///< In the order of the file.
    std::vector<config_error> errors;     ///< Lines that are neither a section, a key, a comment nor empty.
};

/// Splits the text of a configuration file. Keys and values are not checked. After 50 errors the rest is skipped.
///
///     # comment
///     [model digits]
///     max_batch = 32   # comment after a blank
///     versions = "1, 2"
config_lines split_config(std::string_view text, const std::string& file);

/// A section from the text between its brackets, such as "model digits". If it is none, `problem` says why.
config_section parse_section(std::string_view text, std::string& problem);

/// Whether it can be the name of a model or tenant: 1 to 128 letters, digits, dots, underscores and hyphens, beginning
/// with a letter or digit.
bool is_config_name(std::string_view text) noexcept;

/// The text without blanks at both ends.
std::string_view without_blanks(std::string_view text) noexcept;

} // namespace coaccel::server

#endif
