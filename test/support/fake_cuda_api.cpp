#include "support/fake_cuda_state.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace test {

using state = fake_cuda::state;

std::atomic<state*> current_fake = nullptr;

namespace {

/// Whether the error is sticky on hardware: every later call fails too.
bool is_sticky(CUresult r)
{
    switch (static_cast<int>(r)) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
    }
}

/// Functions that need no current context.
bool needs_no_context(int f)
{
    switch (f) {
    case fn_cuInit:
    case fn_cuDriverGetVersion:
    case fn_cuDeviceGetCount:
    case fn_cuDeviceGet:
    case fn_cuDeviceGetName:
    case fn_cuDeviceGetAttribute:
    case fn_cuDeviceTotalMem:
    case fn_cuGetErrorName:
    case fn_cuGetErrorString:
    case fn_cuDevicePrimaryCtxRetain:
    case fn_cuDevicePrimaryCtxRelease:
    case fn_cuCtxPushCurrent:
    case fn_cuCtxPopCurrent:
    case fn_cuCtxSetCurrent:
    case fn_cuThreadExchangeStreamCaptureMode:
    case fn_cuGraphDestroy:
    case fn_cuMemGetAllocationGranularity:
    case fn_cuMemCreate:
    case fn_cuMemRelease:
    case fn_cuMemExportToShareableHandle:
    case fn_cuMemPoolCreate:
    case fn_cuMemPoolDestroy:
    case fn_cuMemPoolTrimTo:
    case fn_cuMemPoolSetAttribute:
    case fn_cuMemPoolGetAttribute: return true;
    default: return false;
    }
}

/// Functions that do not access the context, or only to leave or destroy it.
bool outlives_context(int f)
{
    switch (f) {
    case fn_cuInit:
    case fn_cuDriverGetVersion:
    case fn_cuDeviceGetCount:
    case fn_cuDeviceGet:
    case fn_cuDeviceGetName:
    case fn_cuDeviceGetAttribute:
    case fn_cuDeviceTotalMem:
    case fn_cuGetErrorName:
    case fn_cuGetErrorString:
    case fn_cuDevicePrimaryCtxRelease:
    case fn_cuThreadExchangeStreamCaptureMode:
    case fn_cuCtxPopCurrent: return true;
    default: return false;
    }
}

bool takes_stream(int f)
{
    switch (f) {
    case fn_cuStreamQuery:
    case fn_cuStreamSynchronize:
    case fn_cuStreamWaitEvent:
    case fn_cuStreamDestroy:
    case fn_cuEventRecord:
    case fn_cuLaunchHostFunc:
    case fn_cuLaunchKernel:
    case fn_cuGraphLaunch:
    case fn_cuMemAllocFromPoolAsync:
    case fn_cuMemFreeAsync:
    case fn_cuMemcpyHtoDAsync:
    case fn_cuMemcpyDtoHAsync:
    case fn_cuMemcpyDtoDAsync:
    case fn_cuMemsetD8Async:
    case fn_cuMemsetD16Async:
    case fn_cuMemsetD32Async:
    case fn_cuMemsetD2D32Async: return true;
    default: return false;
    }
}

/// Functions that driver 580 refuses while a capture is under way that the thread's capture mode protects. Functions
/// whose answer also depends on their stream or event check this themselves. Loading a module, creating and destroying
/// streams and events, and launches on other streams are allowed.
bool disturbs_captures(int f)
{
    switch (f) {
    case fn_cuStreamQuery:
    case fn_cuStreamSynchronize:
    case fn_cuMemPoolTrimTo:
    case fn_cuMemAllocManaged:
    case fn_cuMemFree:
    case fn_cuMemHostRegister:
    case fn_cuMemHostUnregister:
    case fn_cuModuleUnload: return true;
    default: return false;
    }
}

template <class Call>
CUresult dispatch(int f, Call call)
{
    state* s = current_fake;
    if (!s)
        return CUDA_ERROR_DEINITIALIZED;
    const std::unique_lock lock(s->mutex);
    if (s->stopping)
        return CUDA_ERROR_DEINITIALIZED;
    auto& self = fake_thread::of(*s);
    const std::string name(fake_cuda::function_names()[static_cast<std::size_t>(f)]);
    ++s->counts[static_cast<std::size_t>(f)];
    if (self.in_callback)
        s->violate(name + " called from a host function");
    if (s->dead != CUDA_SUCCESS && !outlives_context(f)) {
        const CUresult r = s->refuse(name);
        // Measured with driver 580, after a reset of the primary context.
        return r == CUDA_ERROR_CONTEXT_IS_DESTROYED && takes_stream(f) ? CUDA_ERROR_INVALID_CONTEXT : r;
    }
    auto& plans = s->plans[f];
    CUresult refused = CUDA_SUCCESS;
    for (auto& p : plans)
        if (--p.countdown == 0 || (p.lasting && p.countdown < 0))
            refused = p.result;
    std::erase_if(plans, [](const state::plan& p) { return p.countdown <= 0 && !p.lasting; });
    s->planned_end = CUDA_SUCCESS;
    if (f == fn_cuStreamEndCapture && refused != CUDA_SUCCESS && !is_sticky(refused))
        // Whatever it returns, this call ends the capture.
        s->planned_end = std::exchange(refused, CUDA_SUCCESS);
    if (refused == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || refused == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        s->invalidate_captures([](const state::capture& c) { return c.thread == std::this_thread::get_id(); });
    if (refused != CUDA_SUCCESS) {
        if (is_sticky(refused)) {
            s->die(refused);
            self.told = true;
        }
        return refused;
    }
    if (!needs_no_context(f) && !s->current()) {
        s->violate(name + " without a current context");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (disturbs_captures(f))
        if (const CUresult r = s->check_captures(); r != CUDA_SUCCESS)
            return r;
    const CUresult r = call(*s);
    self.told |= s->dead != CUDA_SUCCESS && r == s->dead;
    return r;
}

template <int Function, auto Member>
struct entry;

template <int Function, class... Args, CUresult (state::*Member)(Args...)>
struct entry<Function, Member> {
    static CUresult CUDAAPI call(Args... args)
    {
        return dispatch(Function, [&](state& s) { return (s.*Member)(args...); });
    }
};

} // namespace

void state::fill(coaccel::cuda::driver_api& t)
{
#define COACCEL_FAKE_BIND(function, member) t.function = &entry<fn_##function, &state::member>::call
    COACCEL_FAKE_BIND(cuInit, init);
    COACCEL_FAKE_BIND(cuDriverGetVersion, driver_version);
    COACCEL_FAKE_BIND(cuDeviceGetCount, device_count);
    COACCEL_FAKE_BIND(cuDeviceGet, device_get);
    COACCEL_FAKE_BIND(cuDeviceGetName, device_name);
    COACCEL_FAKE_BIND(cuDeviceGetAttribute, device_attribute);
    COACCEL_FAKE_BIND(cuDeviceTotalMem, device_total);
    COACCEL_FAKE_BIND(cuGetErrorName, error_name);
    COACCEL_FAKE_BIND(cuGetErrorString, error_string);
    COACCEL_FAKE_BIND(cuDevicePrimaryCtxRetain, context_retain);
    COACCEL_FAKE_BIND(cuDevicePrimaryCtxRelease, context_release);
    COACCEL_FAKE_BIND(cuCtxPushCurrent, context_push);
    COACCEL_FAKE_BIND(cuCtxPopCurrent, context_pop);
    COACCEL_FAKE_BIND(cuCtxSetCurrent, context_set);
    COACCEL_FAKE_BIND(cuCtxGetStreamPriorityRange, priority_range);
    COACCEL_FAKE_BIND(cuStreamCreateWithPriority, stream_create);
    COACCEL_FAKE_BIND(cuStreamDestroy, stream_destroy);
    COACCEL_FAKE_BIND(cuStreamQuery, stream_query);
    COACCEL_FAKE_BIND(cuStreamSynchronize, stream_synchronize);
    COACCEL_FAKE_BIND(cuStreamWaitEvent, stream_wait);
    COACCEL_FAKE_BIND(cuStreamBeginCapture, begin_capture);
    COACCEL_FAKE_BIND(cuStreamIsCapturing, is_capturing);
    COACCEL_FAKE_BIND(cuThreadExchangeStreamCaptureMode, exchange_capture_mode);
    COACCEL_FAKE_BIND(cuGraphInstantiateWithFlags, graph_instantiate);
    COACCEL_FAKE_BIND(cuGraphUpload, graph_upload);
    COACCEL_FAKE_BIND(cuGraphLaunch, graph_launch);
    COACCEL_FAKE_BIND(cuGraphGetNodes, graph_nodes);
    COACCEL_FAKE_BIND(cuGraphExecKernelNodeSetParams, kernel_node_set);
    COACCEL_FAKE_BIND(cuGraphExecDestroy, graph_exec_destroy);
    COACCEL_FAKE_BIND(cuGraphDestroy, graph_destroy);
    COACCEL_FAKE_BIND(cuStreamEndCapture, end_stream_capture);
    COACCEL_FAKE_BIND(cuEventCreate, event_create);
    COACCEL_FAKE_BIND(cuEventDestroy, event_destroy);
    COACCEL_FAKE_BIND(cuEventRecord, event_record);
    COACCEL_FAKE_BIND(cuEventQuery, event_query);
    COACCEL_FAKE_BIND(cuEventSynchronize, event_synchronize);
    COACCEL_FAKE_BIND(cuLaunchHostFunc, host_function);
    COACCEL_FAKE_BIND(cuMemGetInfo, memory_info);
    COACCEL_FAKE_BIND(cuMemPoolCreate, pool_create);
    COACCEL_FAKE_BIND(cuMemPoolDestroy, pool_destroy);
    COACCEL_FAKE_BIND(cuMemPoolTrimTo, pool_trim);
    COACCEL_FAKE_BIND(cuMemPoolSetAttribute, pool_set);
    COACCEL_FAKE_BIND(cuMemPoolGetAttribute, pool_get);
    COACCEL_FAKE_BIND(cuMemAllocFromPoolAsync, allocate_async);
    COACCEL_FAKE_BIND(cuMemFreeAsync, free_async);
    COACCEL_FAKE_BIND(cuMemAllocManaged, allocate_managed);
    COACCEL_FAKE_BIND(cuMemFree, free);
    COACCEL_FAKE_BIND(cuMemHostRegister, host_register);
    COACCEL_FAKE_BIND(cuMemHostUnregister, host_unregister);
    COACCEL_FAKE_BIND(cuPointerGetAttributes, pointer_attributes);
    COACCEL_FAKE_BIND(cuMemcpyHtoDAsync, copy_to_device);
    COACCEL_FAKE_BIND(cuMemcpyDtoHAsync, copy_to_host);
    COACCEL_FAKE_BIND(cuMemcpyDtoDAsync, copy_on_device);
    COACCEL_FAKE_BIND(cuMemsetD8Async, set8);
    COACCEL_FAKE_BIND(cuMemsetD16Async, set16);
    COACCEL_FAKE_BIND(cuMemsetD32Async, set32);
    COACCEL_FAKE_BIND(cuMemsetD2D32Async, set32_rows);
    COACCEL_FAKE_BIND(cuMemGetAllocationGranularity, granularity);
    COACCEL_FAKE_BIND(cuMemGetAllocationPropertiesFromHandle, handle_properties);
    COACCEL_FAKE_BIND(cuMemCreate, create_memory);
    COACCEL_FAKE_BIND(cuMemRelease, release_memory);
    COACCEL_FAKE_BIND(cuMemAddressReserve, reserve_addresses);
    COACCEL_FAKE_BIND(cuMemAddressFree, free_addresses);
    COACCEL_FAKE_BIND(cuMemMap, map_memory);
    COACCEL_FAKE_BIND(cuMemUnmap, unmap_memory);
    COACCEL_FAKE_BIND(cuMemSetAccess, set_access);
    COACCEL_FAKE_BIND(cuMemExportToShareableHandle, export_memory);
    COACCEL_FAKE_BIND(cuMemImportFromShareableHandle, import_memory);
    COACCEL_FAKE_BIND(cuModuleLoadData, module_load);
    COACCEL_FAKE_BIND(cuModuleUnload, module_unload);
    COACCEL_FAKE_BIND(cuModuleGetFunction, module_function);
    COACCEL_FAKE_BIND(cuFuncGetAttribute, function_get);
    COACCEL_FAKE_BIND(cuFuncSetAttribute, function_set);
    COACCEL_FAKE_BIND(cuFuncGetParamInfo, parameter_info);
    COACCEL_FAKE_BIND(cuLaunchKernel, launch_kernel);
    COACCEL_FAKE_BIND(cuOccupancyMaxPotentialBlockSize, best_block);
    COACCEL_FAKE_BIND(cuOccupancyMaxActiveBlocksPerMultiprocessor, active_blocks);
#undef COACCEL_FAKE_BIND
    t.prefetch = &entry<fn_cuMemPrefetchAsync, &state::prefetch>::call;
    t.advise = &entry<fn_cuMemAdvise, &state::advise>::call;
    t.capture_info = &entry<fn_cuStreamGetCaptureInfo, &state::capture_info>::call;
    t.elapsed_time = &entry<fn_cuEventElapsedTime, &state::event_elapsed_time>::call;
    t.path = "fake";
    t.version = how.driver_version;
}

CUresult state::init(unsigned)
{
    return CUDA_SUCCESS;
}

CUresult state::driver_version(int* version)
{
    *version = how.driver_version;
    return CUDA_SUCCESS;
}

CUresult state::device_count(int* count)
{
    *count = how.devices;
    return CUDA_SUCCESS;
}

CUresult state::device_get(CUdevice* device, int ordinal)
{
    if (ordinal < 0 || ordinal >= how.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult state::device_name(char* name, int length, CUdevice device)
{
    if (device < 0 || device >= how.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(name, static_cast<std::size_t>(length), "%s", how.name.c_str());
    return CUDA_SUCCESS;
}

CUresult state::device_attribute(int* value, CUdevice_attribute a, CUdevice device)
{
    if (device < 0 || device >= how.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute(a);
    return CUDA_SUCCESS;
}

int state::attribute(CUdevice_attribute a) const
{
    if (const auto given = how.attributes.find(a); given != how.attributes.end())
        return given->second;
    switch (a) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 132;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 49152;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return 232448;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
    default: return 0;
    }
}

CUresult state::device_total(std::size_t* bytes, CUdevice device)
{
    if (device < 0 || device >= how.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = how.total_memory;
    return CUDA_SUCCESS;
}

CUresult state::error_name(CUresult r, const char** text)
{
    *text = r == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

CUresult state::error_string(CUresult r, const char** text)
{
    *text = r == CUDA_SUCCESS ? "no error" : "an error of the fake driver's";
    return CUDA_SUCCESS;
}

} // namespace test
