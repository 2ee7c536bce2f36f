#ifndef COACCEL_CUDA_LOAD_NVRTC_API_HPP
#define COACCEL_CUDA_LOAD_NVRTC_API_HPP

#include <coaccel/core/result.hpp>

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

/// NVRTC, function by function. Tests put functions of their own in it.
struct nvrtc_api {
#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_NVRTC_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER

    std::string path;
    /// 1000 times the major version plus 10 times the minor one.
    int version = 0;
    /// Changes with updates that keep the version. Of the file as it was loaded: it may be replaced later.
    std::string build;
};

/// NVRTC of this machine, opened on first use; what failed is tried again at the next call. Never given back.
result<const nvrtc_api*> load_nvrtc();

} // namespace coaccel::cuda

#endif
