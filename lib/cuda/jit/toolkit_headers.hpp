#ifndef COACCEL_CUDA_JIT_TOOLKIT_HEADERS_HPP
#define COACCEL_CUDA_JIT_TOOLKIT_HEADERS_HPP

#include <string>
#include <vector>

namespace coaccel::cuda {

/// Where the headers of the CUDA toolkit and of CCCL are.
struct toolkit_headers {
    std::vector<std::string> folders;
    /// The versions of both and the stamps of some files, for what was compiled with them.
    std::string identity;
};

/// Those that belong to the NVRTC library of this path, else those of $CUDA_HOME, $CUDA_PATH and the usual folder.
toolkit_headers find_toolkit_headers(const std::string& nvrtc_path);

} // namespace coaccel::cuda

#endif
