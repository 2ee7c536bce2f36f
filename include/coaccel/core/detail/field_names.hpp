#ifndef COACCEL_CORE_DETAIL_FIELD_NAMES_HPP
#define COACCEL_CORE_DETAIL_FIELD_NAMES_HPP

#include <coaccel/core/config.hpp>

#include <cstddef>
#include <string_view>

// The names in messages of fields that have none, such as the arguments of a kernel. They exist until the end of the
// program.
namespace coaccel::detail {

/// "argument 1" for 0.
COACCEL_DECL std::string_view argument_name(std::size_t index);

/// "operand 1" for 0.
COACCEL_DECL std::string_view operand_name(std::size_t index);

} // namespace coaccel::detail

#endif
