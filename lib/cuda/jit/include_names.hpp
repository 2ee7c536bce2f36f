#ifndef COACCEL_CUDA_JIT_INCLUDE_NAMES_HPP
#define COACCEL_CUDA_JIT_INCLUDE_NAMES_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::cuda {

/// The names after #include and in __has_include, also in inactive code. Nothing if a macro may produce a name.
std::optional<std::vector<std::string>> included_names(std::string_view text);

} // namespace coaccel::cuda

#endif
