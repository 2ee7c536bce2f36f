#ifndef COACCEL_CUDA_JIT_NVRTC_API_HPP
#define COACCEL_CUDA_JIT_NVRTC_API_HPP

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

/// Table of NVRTC functions. Tests fill it with their own.
struct nvrtc_api {
#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_NVRTC_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER

    std::string path;
    /// 1000 * major + 10 * minor.
    int version = 0;
    /// Changes with updates that keep the version. Describes the file as it was loaded; it may be replaced later.
    std::string build;
};

/// This machine's NVRTC, opened on first use. After a failure the next call tries again. Never unloaded.
result<const nvrtc_api*> load_nvrtc();

} // namespace coaccel::cuda

#endif
