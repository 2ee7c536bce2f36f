#include "cuda/driver/error.hpp"

#include "cuda/driver/driver_setup.hpp"
#include "cuda/loader/vendor_category.hpp"

#include <string>

namespace coaccel::cuda {
namespace {

// Numbers, because older headers lack some of the names. context_lost: errors after which, according to cuda.h, the
// process must be relaunched, errors that leave the context in an unknown state, and those that calls return after a
// reset of the primary context (cudaDeviceReset): 201 if they take a stream, else 709.
constexpr vendor_error driver_errors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", fault::library},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", fault::busy},
    {3, "CUDA_ERROR_NOT_INITIALIZED", fault::device_lost},
    {4, "CUDA_ERROR_DEINITIALIZED", fault::device_lost},
    {34, "CUDA_ERROR_STUB_LIBRARY", fault::device_lost},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", fault::library},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", fault::device_lost},
    {100, "CUDA_ERROR_NO_DEVICE", fault::device_lost},
    {101, "CUDA_ERROR_INVALID_DEVICE", fault::device_lost},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", fault::device_lost},
    {200, "CUDA_ERROR_INVALID_IMAGE", fault::library},
    {201, "CUDA_ERROR_INVALID_CONTEXT", fault::context_lost},
    {205, "CUDA_ERROR_MAP_FAILED", fault::library},
    {206, "CUDA_ERROR_UNMAP_FAILED", fault::library},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", fault::library},
    {208, "CUDA_ERROR_ALREADY_MAPPED", fault::library},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", fault::library},
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", fault::library},
    {211, "CUDA_ERROR_NOT_MAPPED", fault::library},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", fault::library},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", fault::library},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", fault::device_lost},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", fault::library},
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", fault::library},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", fault::library},
    {218, "CUDA_ERROR_INVALID_PTX", fault::library},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", fault::device_lost},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", fault::library},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", fault::library},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", fault::library},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", fault::library},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", fault::library},
    {226, "CUDA_ERROR_CONTAINED", fault::context_lost},
    {300, "CUDA_ERROR_INVALID_SOURCE", fault::library},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", fault::library},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", fault::library},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", fault::library},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", fault::library},
    {400, "CUDA_ERROR_INVALID_HANDLE", fault::library},
    {401, "CUDA_ERROR_ILLEGAL_STATE", fault::library},
    {402, "CUDA_ERROR_LOSSY_QUERY", fault::library},
    {500, "CUDA_ERROR_NOT_FOUND", fault::library},
    {600, "CUDA_ERROR_NOT_READY", fault::library},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", fault::context_lost},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", fault::library},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", fault::context_lost},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", fault::library},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", fault::library},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", fault::library},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", fault::context_lost},
    {710, "CUDA_ERROR_ASSERT", fault::context_lost},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", fault::library},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", fault::library},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", fault::library},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", fault::context_lost},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", fault::context_lost},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", fault::context_lost},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", fault::context_lost},
    {718, "CUDA_ERROR_INVALID_PC", fault::context_lost},
    {719, "CUDA_ERROR_LAUNCH_FAILED", fault::context_lost},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", fault::library},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", fault::context_lost},
    {800, "CUDA_ERROR_NOT_PERMITTED", fault::library},
    {801, "CUDA_ERROR_NOT_SUPPORTED", fault::library},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", fault::device_lost},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", fault::device_lost},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", fault::device_lost},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", fault::library},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", fault::library},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", fault::busy},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", fault::busy},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", fault::busy},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", fault::context_lost},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", fault::library},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", fault::library},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", fault::library},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", fault::library},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", fault::library},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", fault::library},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", fault::library},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", fault::library},
    {907, "CUDA_ERROR_CAPTURED_EVENT", fault::library},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", fault::library},
    {909, "CUDA_ERROR_TIMEOUT", fault::library},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", fault::library},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", fault::context_lost},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", fault::library},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", fault::library},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", fault::library},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", fault::library},
    {916, "CUDA_ERROR_KEY_ROTATION", fault::library},
    {999, "CUDA_ERROR_UNKNOWN", fault::context_lost},
};

struct driver_category_type final : vendor_category {
    driver_category_type() noexcept : vendor_category("coaccel.cuda", "CUDA", driver_errors) {}

    std::string message(int value) const override
    {
        const std::string text = vendor_text(loaded_driver(), static_cast<CUresult>(value));
        return text.empty() ? vendor_category::message(value) : text;
    }
};

const driver_category_type& category() noexcept
{
    static const driver_category_type instance;
    return instance;
}

} // namespace

const boost::system::error_category& driver_category() noexcept
{
    return category();
}

error_code make_error(CUresult r) noexcept
{
    if (r == CUDA_SUCCESS)
        return {};
    return r == CUDA_ERROR_OUT_OF_MEMORY ? make_error_code(errc::out_of_memory) : error_code(r, driver_category());
}

bool is_sticky(CUresult r) noexcept
{
    // These end every context as well, but are classified as device_lost.
    if (r == CUDA_ERROR_DEINITIALIZED || r == CUDA_ERROR_ECC_UNCORRECTABLE || r == CUDA_ERROR_NVLINK_UNCORRECTABLE)
        return true;
    const vendor_error* known = category().find(r);
    return known && known->kind == fault::context_lost;
}

std::string vendor_text(const driver_api* api, CUresult r)
{
    const char* text = nullptr;
    const char* name = nullptr;
    if (!api || api->cuGetErrorString(r, &text) != CUDA_SUCCESS || !text)
        return {};
    if (api->cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
        return text;
    return std::string(text) + " (" + name + ')';
}

} // namespace coaccel::cuda
