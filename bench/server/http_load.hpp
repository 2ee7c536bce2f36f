#ifndef COACCEL_BENCH_SERVER_HTTP_LOAD_HPP
#define COACCEL_BENCH_SERVER_HTTP_LOAD_HPP

#include <cstdint>
#include <functional>
#include <string>

namespace coaccel::bench {

/// A load for an HTTP server on this machine.
struct http_load {
    std::uint16_t port = 0;
    std::string request; ///< The whole request.
    int connections = 64;
    std::uint64_t requests = 0; ///< Ends after so many of them; 0: after `seconds`.
    double seconds = 0;
    std::function<void(double)> tick{}; ///< Called about 20 times in a second, with the seconds since the start.
};

struct http_load_result {
    std::uint64_t answered = 0;
    std::uint64_t failed = 0; ///< Replies with another status than 200, and connections that have ended.
    double seconds = 0;
    double longest = 0; ///< The longest time for a reply, in seconds.
    std::string first_failure;
};

/// Sends the request on each connection again when the reply has come. In the thread of the caller.
http_load_result run_http_load(const http_load& load);

} // namespace coaccel::bench

#endif
