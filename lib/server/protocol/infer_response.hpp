#ifndef COACCEL_SERVER_PROTOCOL_INFER_RESPONSE_HPP
#define COACCEL_SERVER_PROTOCOL_INFER_RESPONSE_HPP

#include "server/protocol/infer_call.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace coaccel::server {

/// How the body of a reply is divided.
struct response_parts {
    /// The length of the JSON, for the header field Inference-Header-Content-Length; none if all of it is JSON.
    std::optional<std::size_t> json_bytes;
    /// Bytes of the elements that follow the JSON: those of the binary outputs, one after another.
    std::size_t binary_bytes = 0;
};

/// Appends the JSON of the reply. NaN and infinities are the texts "NaN", "Infinity" and "-Infinity".
///
/// Exceptions: std::bad_alloc.
response_parts append_response(std::string& out, std::string_view id, const model_signature& model,
                               const infer_call& call);

/// Appends the elements of the binary outputs.
void append_binary(std::string& out, const model_signature& model, const infer_call& call);

} // namespace coaccel::server

#endif
