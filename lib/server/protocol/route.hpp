#ifndef COACCEL_SERVER_PROTOCOL_ROUTE_HPP
#define COACCEL_SERVER_PROTOCOL_ROUTE_HPP

#include <cstdint>
#include <string>
#include <string_view>

namespace coaccel::server {

/// What a request is for.
enum class endpoint : std::uint8_t {
    server_metadata,
    server_live,
    server_ready,
    model_metadata,
    model_config,
    model_ready,
    model_stats, ///< Of one model, or of all if there is no name.
    infer,
    repository_index,
    repository_load,
    repository_unload,
    page_file,    ///< A file of the page folder; the name is in `model`.
    telemetry,    ///< Not one of the protocol: perhaps the live page or the metrics.
    wrong_method, ///< `allowed` says which ones the path has.
    bad_path,     ///< A name that cannot be decoded.
};

/// The endpoint of a request, and the names in its path.
struct route {
    endpoint where = endpoint::telemetry;
    std::string model;
    std::string version;        ///< Empty: the current one.
    std::string_view allowed{}; ///< For wrong_method.
};

/// Decides by the method and the request target. The query is ignored.
///
/// Exceptions: std::bad_alloc.
route choose_endpoint(std::string_view method, std::string_view target);

/// Replaces each `%41` by its byte. False for digits that are not hexadecimal, and for the zero byte.
bool decode_percent(std::string_view text, std::string& out);

} // namespace coaccel::server

#endif
