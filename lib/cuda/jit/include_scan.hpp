#ifndef COACCEL_CUDA_JIT_INCLUDE_SCAN_HPP
#define COACCEL_CUDA_JIT_INCLUDE_SCAN_HPP

#include <coaccel/ops/jit/compile.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::cuda {

/// Every file that a source may include from these folders, directly or indirectly. The text is searched, not
/// preprocessed, so there may be too many files but never too few. Nothing if a name cannot be determined or a file
/// cannot be read.
std::optional<std::vector<jit::header>> reachable_files(std::string_view source,
                                                        const std::vector<jit::header>& in_memory,
                                                        const std::vector<std::string>& folders);

} // namespace coaccel::cuda

#endif
