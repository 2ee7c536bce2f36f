#ifndef COACCEL_CUDA_JIT_NVRTC_API_HPP
#define COACCEL_CUDA_JIT_NVRTC_API_HPP

#include "cuda/loader/vendor_library.hpp"

#include <nvrtc.h>
#include <string>

namespace coaccel::cuda {

#define COACCEL_NVRTC_FUNCTIONS(X)                                                                                     \
    X(nvrtcVersion)                                                                                                    \
    X(nvrtcGetErrorString)                                                                                             \
    X(nvrtcGetNumSupportedArchs)                                                                                       \
    X(nvrtcGetSupportedArchs)                                                                                          \
    X(nvrtcCreateProgram)                                                                                              \
    X(nvrtcDestroyProgram)                                                                                             \
    X(nvrtcAddNameExpression)                                                                                          \
    X(nvrtcGetLoweredName)                                                                                             \
    X(nvrtcCompileProgram)                                                                                             \
    X(nvrtcGetProgramLogSize)                                                                                          \
    X(nvrtcGetProgramLog)                                                                                              \
    X(nvrtcGetCUBINSize)                                                                                               \
    X(nvrtcGetCUBIN)                                                                                                   \
    X(nvrtcGetPTXSize)                                                                                                 \
    X(nvrtcGetPTX)

/// The functions of NVRTC. Its version is 1000 * major + 10 * minor.
struct nvrtc_api : function_table {
    static constexpr vendor_library library = vendor_library::nvrtc;

    /// This machine's NVRTC, opened on first use. After a failure the next call tries again. Never unloaded.
    static result<const nvrtc_api*> load();

#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_NVRTC_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER

    /// Changes with updates that keep the version. Describes the file as it was loaded; it may be replaced later.
    std::string build;
};

} // namespace coaccel::cuda

#endif
