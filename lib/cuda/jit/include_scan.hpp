#ifndef COACCEL_CUDA_JIT_INCLUDE_SCAN_HPP
#define COACCEL_CUDA_JIT_INCLUDE_SCAN_HPP

#include <coaccel/ops/jit_compile.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::cuda {

/// Every file a source may include from these folders, directly or not: more than it does rather than fewer, because
/// the text is searched and not preprocessed. None when that cannot be told, or a file cannot be read.
std::optional<std::vector<jit::header>> reachable_files(std::string_view source,
                                                        const std::vector<jit::header>& in_memory,
                                                        const std::vector<std::string>& folders);

} // namespace coaccel::cuda

#endif
