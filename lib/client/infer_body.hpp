#ifndef COACCEL_CLIENT_INFER_BODY_HPP
#define COACCEL_CLIENT_INFER_BODY_HPP

#include "client/tensor.hpp"

#include <coaccel/core/result.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::client {

/// How tensors travel.
enum class tensor_form : std::uint8_t {
    binary, ///< As bytes after the JSON.
    json,   ///< As numbers in the JSON.
};

/// The body of a request for an inference.
struct infer_body {
    std::string body;                        ///< JSON, then the elements of binary tensors.
    std::optional<std::uint64_t> json_bytes; ///< The header field Inference-Header-Content-Length; empty: all is JSON.
};

/// Makes a request. Replies have all outputs, in the same form.
///
/// Errors: errc::invalid_argument for elements that JSON cannot have.
/// Exceptions: std::bad_alloc.
result<infer_body> make_infer_body(const std::vector<tensor>& inputs, tensor_form form,
                                   std::chrono::microseconds deadline = {});

/// The outputs of a reply.
///
/// Errors: errc::invalid_argument with what is wrong with the reply, which names the field.
/// Exceptions: std::bad_alloc.
result<std::vector<tensor>> parse_infer_reply(std::string_view body, std::optional<std::uint64_t> json_bytes);

/// The elements as a list of JSON. Errors: errc::invalid_argument for a type whose elements are no numbers of JSON.
result<std::string> elements_text(const tensor& t);

} // namespace coaccel::client

#endif
