#ifndef COACCEL_CORE_ESCAPE_TEXT_HPP
#define COACCEL_CORE_ESCAPE_TEXT_HPP

#include <coaccel/core/config.hpp>

#include <string>
#include <string_view>

namespace coaccel::detail {

/// Converts text from another process to one line that is safe for a terminal or a log: each byte that is not part of a
/// printable UTF-8 character becomes `\xNN`. Tabs are kept.
COACCEL_DECL std::string escape_text(std::string_view text);

/// The number of bytes before an incomplete character at the end of the text.
COACCEL_DECL std::size_t whole_characters(std::string_view text) noexcept;

} // namespace coaccel::detail

#endif
