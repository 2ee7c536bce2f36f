#ifndef COACCEL_CLIENT_LOAD_TEST_HPP
#define COACCEL_CLIENT_LOAD_TEST_HPP

#include "client/http_session.hpp"
#include "client/latency_histogram.hpp"
#include "client/server_address.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace coaccel::client {

/// What a load test has done so far.
struct load_progress {
    std::chrono::nanoseconds elapsed{0}; ///< Since the first request.
    std::uint64_t answered = 0;          ///< Requests with status 200.
    std::uint64_t failed = 0;            ///< Requests with another status, or without a reply.
};

/// How the load is made.
struct load_options {
    server_address where{};                                      ///< The server.
    std::string key{};                                           ///< The API key; empty: none.
    std::chrono::nanoseconds timeout = std::chrono::seconds(30); ///< For each request.
    int connections = 8;                                         ///< Each has one request at a time.
    int threads = 1;                                             ///< At most as many as connections.
    std::optional<std::uint64_t> count{};                        ///< The requests; empty: any number.
    std::optional<std::chrono::nanoseconds> duration{};          ///< No request starts later; empty: at any time.
    http_request request{};                                      ///< The request, always the same.
    /// Called each second by the thread that called run_load. May be empty.
    std::function<void(const load_progress&)> on_progress{};
};

/// What a load test has found.
struct load_report {
    std::chrono::nanoseconds elapsed{0};             ///< From the first request to the last reply.
    latency_histogram latencies{};                   ///< Of the requests with status 200.
    std::map<std::string, std::uint64_t> failures{}; ///< By kind, such as "status 429" or "timeout".
    std::map<std::string, std::string> examples{};   ///< A message of the server for each kind with a status.
    std::uint64_t connections = 0;                   ///< That were made.
    bool interrupted = false;                        ///< By SIGINT.

    std::uint64_t failed() const noexcept; ///< All failures.
    double rate() const noexcept;          ///< Requests with status 200 for each second.
};

/// Runs a load test; returns when the last request has ended. SIGINT ends it early.
///
/// After a failed connection the next attempt waits for 50 ms, so that a server that is down is not flooded.
/// Exceptions: std::bad_alloc; std::system_error if no thread can be started.
load_report run_load(const load_options& options);

/// The report as lines for a person.
std::string report_text(const load_report& report);

/// The report as one JSON object.
std::string report_json(const load_report& report);

} // namespace coaccel::client

#endif
