#ifndef COACCEL_WORKER_PRINTABLE_HPP
#define COACCEL_WORKER_PRINTABLE_HPP

#include <coaccel/core/config.hpp>

#include <string>
#include <string_view>

namespace coaccel::worker {

/// What another process says, as one line that does nothing to a terminal or a log: each byte of what is not a
/// printable character of UTF-8 becomes `\xNN`. Tabs stay.
COACCEL_DECL std::string printable(std::string_view text);

/// How many bytes there are before a character that is cut off at the end of the text.
COACCEL_DECL std::size_t whole_characters(std::string_view text) noexcept;

} // namespace coaccel::worker

#endif
