#ifndef COACCEL_CLIENT_CLIENT_OPTIONS_HPP
#define COACCEL_CLIENT_CLIENT_OPTIONS_HPP

#include "client/infer_body.hpp"
#include "client/server_address.hpp"

#include <coaccel/core/result.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::client {

/// What the program does.
enum class client_verb : std::uint8_t { help, version, health, metadata, stats, index, infer, load };

/// An input or output of a model and a file.
struct named_file {
    std::string name; ///< Empty: the only one of the model.
    std::string file; ///< A .npy file.

    bool operator==(const named_file&) const = default;
};

/// The command line of the client.
struct client_options {
    client_verb verb = client_verb::help;                        ///< What to do.
    server_address where{};                                      ///< The server.
    std::string key{};                                           ///< The API key; empty: none.
    std::chrono::nanoseconds timeout = std::chrono::seconds(30); ///< For each request.
    std::string model{};                                         ///< The model; empty: the server itself.
    std::string model_version{};                                 ///< Empty: the server chooses.
    std::vector<named_file> inputs{};                            ///< Inputs from files.
    std::vector<named_file> outputs{};                           ///< Outputs to files.
    std::string request_file{};                                  ///< A whole request as JSON; "-": the standard input.
    tensor_form form = tensor_form::binary;                      ///< How tensors travel.
    std::chrono::microseconds deadline{0};                       ///< That the server is told; 0: none.
    int connections = 8;                                         ///< Of a load test.
    int threads = 1;                                             ///< Of a load test.
    std::optional<std::uint64_t> count{};                        ///< The requests of a load test.
    std::optional<std::chrono::nanoseconds> duration{};          ///< Of a load test.
    std::uint64_t rows = 1;                                      ///< Of made-up inputs.
    bool progress = false;                                       ///< A progress line even without a terminal.
    bool json_report = false;                                    ///< The report of a load test as JSON.
};

/// Values of environment variables.
struct client_environment {
    std::string server{}; ///< COACCEL_SERVER; empty: not set.
    std::string key{};    ///< COACCEL_API_KEY; empty: not set.
};

/// Parses the words after the name of the program.
///
/// Errors: errc::invalid_argument; the message names the word, the value and, for an unknown one, the nearest known.
/// Exceptions: std::bad_alloc.
result<client_options> parse_client_options(std::span<const char* const> words, const client_environment& environment);

/// The help text.
std::string client_help();

/// The table of flags, for the documentation in Markdown.
std::string client_reference();

} // namespace coaccel::client

#endif
