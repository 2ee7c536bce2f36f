#ifndef COACCEL_CUDA_JIT_TOOLKIT_HEADERS_HPP
#define COACCEL_CUDA_JIT_TOOLKIT_HEADERS_HPP

#include <string>
#include <vector>

namespace coaccel::cuda {

/// The folders with the headers of the CUDA toolkit and of CCCL.
struct toolkit_headers {
    std::vector<std::string> folders;
    /// The versions of both and the stamps of some files; part of the cache key.
    std::string identity;
};

/// The headers that belong to this NVRTC library, else those in $CUDA_HOME, $CUDA_PATH or the default folder.
toolkit_headers find_toolkit_headers(const std::string& nvrtc_path);

} // namespace coaccel::cuda

#endif
