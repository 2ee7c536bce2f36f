#ifndef COACCEL_SERVER_CONFIG_SERVER_CONFIG_HPP
#define COACCEL_SERVER_CONFIG_SERVER_CONFIG_HPP

#include "server/config/config_error.hpp"
#include "server/config/config_lines.hpp"

#include <coaccel/core/config.hpp>
#include <coaccel/server/server_options.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::server {

/// What the command line asks for.
enum class config_action : std::uint8_t {
    run,     ///< To serve.
    check,   ///< To check the configuration, and to end.
    help,    ///< To print config_help().
    version, ///< To print the version.
};

/// The command line of the server.
struct command_line {
    config_action action = config_action::run; ///< What it asks for.
    std::string file{};                        ///< The configuration file; empty: none.
    std::vector<config_entry> entries{};       ///< The options, which are stronger than those of the file.
    std::vector<config_error> errors{};        ///< Words that are no flags, and flags without their value.
};

/// Reads `--KEY VALUE` and `--KEY=VALUE` for keys of [server], `--model.NAME.KEY VALUE` and `--tenant.NAME.KEY VALUE`,
/// `--config FILE`, `--check-config`, `--help` and `--version`. Hyphens stand for underscores in keys. Keys and values
/// are not checked.
COACCEL_DECL command_line parse_command_line(std::span<const char* const> arguments);

/// Options and what is wrong with them.
struct server_config {
    server_options options;           ///< Complete only if there are no errors.
    std::vector<config_error> errors; ///< In the order of the file, then of the command line.
};

/// Joins the text of a configuration file and the options of a command line.
COACCEL_DECL server_config make_config(std::string_view text, const std::string& file,
                                       const std::vector<config_entry>& flags);

/// The same, with the text from the file; without a file if `line.file` is empty. The errors of the command line are
/// among those of the result.
COACCEL_DECL server_config load_config(const command_line& line);

/// Whether secrets are written.
enum class secrets : std::uint8_t { shown, hidden };

/// A configuration file with every key, that yields these options. Hidden secrets are written as asterisks.
COACCEL_DECL std::string config_text(const server_options& options, secrets show);

/// The help text of the program: its flags, and every key with its default.
COACCEL_DECL std::string config_help(std::string_view program);

/// The tables of keys, for the documentation in Markdown.
COACCEL_DECL std::string config_reference();

} // namespace coaccel::server

#endif
