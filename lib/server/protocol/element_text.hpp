#ifndef COACCEL_SERVER_PROTOCOL_ELEMENT_TEXT_HPP
#define COACCEL_SERVER_PROTOCOL_ELEMENT_TEXT_HPP

#include <coaccel/core/dtype.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace coaccel::server {

/// Appends the elements as JSON numbers with commas between them, each the shortest text that gives the same number.
/// Complex elements are two numbers each. NaN and infinities are texts.
void append_elements(std::string& out, dtype type, std::span<const std::byte> elements);

} // namespace coaccel::server

#endif
