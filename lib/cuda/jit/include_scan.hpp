#ifndef COACCEL_CUDA_JIT_INCLUDE_SCAN_HPP
#define COACCEL_CUDA_JIT_INCLUDE_SCAN_HPP

#include <coaccel/ops/jit_compile.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::cuda {

/// The names after #include, in comments and inactive code too. None at all when one is made by a macro.
std::optional<std::vector<std::string>> included_names(std::string_view text);

/// Every file a source may include from these folders, directly or not: more than it does rather than fewer, because
/// the text is searched and not preprocessed. None when that cannot be told from the text.
std::optional<std::vector<jit::header>> reachable_files(std::string_view source,
                                                        const std::vector<jit::header>& in_memory,
                                                        const std::vector<std::string>& folders);

} // namespace coaccel::cuda

#endif
