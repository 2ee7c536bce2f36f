#ifndef COACCEL_SERVER_PROTOCOL_DATATYPE_HPP
#define COACCEL_SERVER_PROTOCOL_DATATYPE_HPP

#include <coaccel/core/dtype.hpp>

#include <optional>
#include <string_view>

namespace coaccel::server {

/// The name of an element type in the Open Inference Protocol, such as "FP32". Types that the protocol does not have
/// get names in its manner: "FP8_E4M3", "FP8_E5M2", "COMPLEX64" and "COMPLEX128".
std::string_view datatype_name(dtype d) noexcept;

/// The element type with this name; none for "BOOL", "BYTES" and everything else that is not one of ours.
std::optional<dtype> datatype_of(std::string_view name) noexcept;

} // namespace coaccel::server

#endif
