#ifndef COACCEL_SERVER_PROTOCOL_INFER_REQUEST_HPP
#define COACCEL_SERVER_PROTOCOL_INFER_REQUEST_HPP

#include <coaccel/core/dtype.hpp>
#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::server {

/// How messages about inferences begin.
inline constexpr std::string_view infer_subject = "infer";

/// An input tensor of a request.
struct request_input {
    std::string name;
    dtype type = dtype::u8;
    std::vector<std::uint64_t> shape;
    /// The elements: in the body of the request, or in infer_request::numbers.
    std::span<const std::byte> data;
};

/// An output that a request asks for.
struct request_output {
    std::string name;
    std::optional<bool> binary; ///< None: as infer_request::binary_output.
};

/// A request for an inference, decoded.
struct infer_request {
    std::string id;
    std::optional<std::chrono::microseconds> timeout; ///< The parameter `timeout`; 0 counts as none.
    std::uint64_t priority = 0;                       ///< 0: the default; 1: the most urgent.
    bool binary_output = false;                       ///< The parameter `binary_data_output`.
    bool raw = false;                                 ///< The body is the data of the only input; there is no JSON.
    std::vector<request_input> inputs;
    std::vector<request_output> outputs; ///< Empty: all.
    std::vector<std::byte> numbers;      ///< The elements of inputs that came as JSON.
};

/// Decodes the body of a request. `json_bytes`: the header field Inference-Header-Content-Length, the length of the
/// JSON at the beginning of the body; the rest are the elements of the inputs that have a `binary_data_size`, one after
/// another. Without the field all of the body is JSON. 0: there is no JSON, and the body has the data of one input.
///
/// Elements in the body are not copied: `into` refers to it.
///
/// Errors: errc::invalid_argument, with a message that names the field and the value. `into` is undefined then.
/// Exceptions: std::bad_alloc.
[[nodiscard]] error_code parse_infer_request(std::string_view body, std::optional<std::uint64_t> json_bytes,
                                             infer_request& into);

} // namespace coaccel::server

#endif
