#ifndef COACCEL_CUDA_DRIVER_DRIVER_API_HPP
#define COACCEL_CUDA_DRIVER_DRIVER_API_HPP

#include "cuda/loader/vendor_library.hpp"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <string>

namespace coaccel::cuda {

// Functions whose current version suits us. cuda.h maps many of these names to a versioned symbol, in the same way here
// and wherever the table is used.
#define COACCEL_CUDA_DRIVER_FUNCTIONS(X)                                                                               \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuDeviceTotalMem)                                                                                                \
    X(cuGetErrorName)                                                                                                  \
    X(cuGetErrorString)                                                                                                \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuCtxPushCurrent)                                                                                                \
    X(cuCtxPopCurrent)                                                                                                 \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxGetStreamPriorityRange)                                                                                     \
    X(cuStreamCreateWithPriority)                                                                                      \
    X(cuStreamDestroy)                                                                                                 \
    X(cuStreamQuery)                                                                                                   \
    X(cuStreamSynchronize)                                                                                             \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuStreamBeginCapture)                                                                                            \
    X(cuStreamEndCapture)                                                                                              \
    X(cuStreamIsCapturing)                                                                                             \
    X(cuThreadExchangeStreamCaptureMode)                                                                               \
    X(cuGraphInstantiateWithFlags)                                                                                     \
    X(cuGraphUpload)                                                                                                   \
    X(cuGraphLaunch)                                                                                                   \
    X(cuGraphGetNodes)                                                                                                 \
    X(cuGraphExecKernelNodeSetParams)                                                                                  \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGraphDestroy)                                                                                                  \
    X(cuEventCreate)                                                                                                   \
    X(cuEventDestroy)                                                                                                  \
    X(cuEventRecord)                                                                                                   \
    X(cuEventQuery)                                                                                                    \
    X(cuEventSynchronize)                                                                                              \
    X(cuLaunchHostFunc)                                                                                                \
    X(cuMemGetInfo)                                                                                                    \
    X(cuMemPoolCreate)                                                                                                 \
    X(cuMemPoolDestroy)                                                                                                \
    X(cuMemPoolTrimTo)                                                                                                 \
    X(cuMemPoolSetAttribute)                                                                                           \
    X(cuMemPoolGetAttribute)                                                                                           \
    X(cuMemAllocFromPoolAsync)                                                                                         \
    X(cuMemFreeAsync)                                                                                                  \
    X(cuMemAllocManaged)                                                                                               \
    X(cuMemFree)                                                                                                       \
    X(cuMemHostRegister)                                                                                               \
    X(cuMemHostUnregister)                                                                                             \
    X(cuPointerGetAttributes)                                                                                          \
    X(cuMemcpyHtoDAsync)                                                                                               \
    X(cuMemcpyDtoHAsync)                                                                                               \
    X(cuMemcpyDtoDAsync)                                                                                               \
    X(cuMemsetD8Async)                                                                                                 \
    X(cuMemsetD16Async)                                                                                                \
    X(cuMemsetD32Async)                                                                                                \
    X(cuMemsetD2D32Async)                                                                                              \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleUnload)                                                                                                  \
    X(cuModuleGetFunction)                                                                                             \
    X(cuFuncGetAttribute)                                                                                              \
    X(cuFuncSetAttribute)                                                                                              \
    X(cuFuncGetParamInfo)                                                                                              \
    X(cuLaunchKernel)                                                                                                  \
    X(cuOccupancyMaxPotentialBlockSize)                                                                                \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)

// Functions that a driver may lack; their pointers are then null.
#define COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(X)                                                                      \
    X(cuMemGetAllocationGranularity)                                                                                   \
    X(cuMemGetAllocationPropertiesFromHandle)                                                                          \
    X(cuMemCreate)                                                                                                     \
    X(cuMemRelease)                                                                                                    \
    X(cuMemAddressReserve)                                                                                             \
    X(cuMemAddressFree)                                                                                                \
    X(cuMemMap)                                                                                                        \
    X(cuMemUnmap)                                                                                                      \
    X(cuMemSetAccess)                                                                                                  \
    X(cuMemExportToShareableHandle)                                                                                    \
    X(cuMemImportFromShareableHandle)

/// The functions of the driver. Its version is 1000 * major + 10 * minor.
struct driver_api : function_table {
    static constexpr vendor_library library = vendor_library::driver;

    /// This machine's driver, opened and initialised on first use. After a failure the next call tries again. Never
    /// unloaded.
    static result<const driver_api*> load();

#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_CUDA_DRIVER_FUNCTIONS(COACCEL_CUDA_MEMBER)
    COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER

    // Versions that every driver since 12.4 has, whatever version the headers map to.
    PFN_cuMemPrefetchAsync_v12020 prefetch = nullptr;
    PFN_cuMemAdvise_v12020 advise = nullptr;
    PFN_cuStreamGetCaptureInfo_v12030 capture_info = nullptr;
    PFN_cuEventElapsedTime_v2000 elapsed_time = nullptr;
};

} // namespace coaccel::cuda

#endif
