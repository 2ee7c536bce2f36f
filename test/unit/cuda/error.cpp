#include "cuda/driver/error.hpp"

#include "cuda/blas/cublas_error.hpp"
#include "cuda/driver/driver_setup.hpp"
#include "cuda/jit/nvrtc_error.hpp"
#include "cuda/rand/curand_error.hpp"
#include "cuda/vendor_libraries.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

namespace test_cuda_error {

namespace {

using namespace coaccel;
using namespace coaccel::cuda;

constexpr fault faults[] = {fault::caller,       fault::busy,        fault::library,
                            fault::context_lost, fault::device_lost, fault::stopped};

void check_fault(const error_code& ec, fault expected)
{
    CAPTURE(ec.category().name());
    CAPTURE(ec.value());
    for (const fault f : faults)
        CHECK((ec == f) == (f == expected));
}

// Errors after which, according to cuda.h, the process must be relaunched, and errors that leave the context in an
// unknown state.
constexpr CUresult context_losses[] = {
    CUDA_ERROR_INVALID_CONTEXT,
    CUDA_ERROR_ILLEGAL_ADDRESS,
    CUDA_ERROR_LAUNCH_TIMEOUT,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_ASSERT,
    CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUDA_ERROR_MISALIGNED_ADDRESS,
    CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUDA_ERROR_INVALID_PC,
    CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_EXTERNAL_DEVICE,
    CUDA_ERROR_MPS_CLIENT_TERMINATED,
    CUDA_ERROR_UNKNOWN,
    // Missing in the oldest headers.
    static_cast<CUresult>(226),
    static_cast<CUresult>(721),
};

constexpr CUresult device_losses[] = {
    CUDA_ERROR_NOT_INITIALIZED,
    CUDA_ERROR_DEINITIALIZED,
    CUDA_ERROR_STUB_LIBRARY,
    CUDA_ERROR_DEVICE_UNAVAILABLE,
    CUDA_ERROR_NO_DEVICE,
    CUDA_ERROR_INVALID_DEVICE,
    CUDA_ERROR_DEVICE_NOT_LICENSED,
    CUDA_ERROR_ECC_UNCORRECTABLE,
    CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_SYSTEM_NOT_READY,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
};

constexpr CUresult shortages[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_MPS_SERVER_NOT_READY,
                                  CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED};

template <class Range>
bool contains(const Range& range, CUresult r)
{
    return std::find(std::begin(range), std::end(range), r) != std::end(range);
}

driver_api talking_driver()
{
    driver_api api;
    api.cuGetErrorString = [](CUresult r, const char** text) {
        *text = r == CUDA_ERROR_ILLEGAL_ADDRESS ? "a bad address" : r == CUDA_ERROR_UNKNOWN ? "anything" : nullptr;
        return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    api.cuGetErrorName = [](CUresult r, const char** name) {
        *name = r == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
        return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    return api;
}

} // namespace

TEST_SUITE_BEGIN("cuda error");

TEST_CASE("success is no error")
{
    CHECK_FALSE(make_error(CUDA_SUCCESS));
    CHECK_FALSE(make_error(CUBLAS_STATUS_SUCCESS));
    CHECK_FALSE(make_error(NVRTC_SUCCESS));
    CHECK_FALSE(make_error(CURAND_STATUS_SUCCESS));
    for (const auto* library : vendor_libraries())
        for (const fault f : faults)
            CHECK_FALSE(error_code(0, library->category()) == f);
}

TEST_CASE("out of memory is errc::out_of_memory")
{
    CHECK(make_error(CUDA_ERROR_OUT_OF_MEMORY) == make_error_code(errc::out_of_memory));
    CHECK(make_error(CUBLAS_STATUS_ALLOC_FAILED) == make_error_code(errc::out_of_memory));
    CHECK(make_error(CURAND_STATUS_ALLOCATION_FAILED) == make_error_code(errc::out_of_memory));
    CHECK(is_busy(make_error(CUDA_ERROR_OUT_OF_MEMORY)));
}

TEST_CASE("errors keep the vendor's value, in a category per vendor library")
{
    CHECK(make_error(CUDA_ERROR_ILLEGAL_ADDRESS) == error_code(700, driver_category()));
    CHECK(make_error(CUBLAS_STATUS_EXECUTION_FAILED) == error_code(13, cublas_category()));
    CHECK(make_error(NVRTC_ERROR_COMPILATION) == error_code(6, nvrtc_category()));
    CHECK(make_error(CURAND_STATUS_TYPE_ERROR) == error_code(103, curand_category()));
    CHECK(std::string(driver_category().name()) == "coaccel.cuda");
    CHECK(std::string(cublas_category().name()) == "coaccel.cublas");
    CHECK(std::string(nvrtc_category().name()) == "coaccel.nvrtc");
    CHECK(std::string(curand_category().name()) == "coaccel.curand");
    CHECK(make_error(CUDA_ERROR_INVALID_VALUE) != make_error(CUBLAS_STATUS_NOT_INITIALIZED));
}

TEST_CASE("each value of the driver maps to one fault")
{
    for (int value = 1; value <= 1000; ++value) {
        const auto r = static_cast<CUresult>(value);
        check_fault(error_code(value, driver_category()), contains(context_losses, r)  ? fault::context_lost
                                                          : contains(device_losses, r) ? fault::device_lost
                                                          : contains(shortages, r)     ? fault::busy
                                                                                       : fault::library);
    }
}

TEST_CASE("sticky errors are those after which our context is dead")
{
    for (int value = 0; value <= 1000; ++value) {
        const auto r = static_cast<CUresult>(value);
        CAPTURE(value);
        const bool gone =
            r == CUDA_ERROR_DEINITIALIZED || r == CUDA_ERROR_ECC_UNCORRECTABLE || r == CUDA_ERROR_NVLINK_UNCORRECTABLE;
        CHECK(is_sticky(r) == (gone || contains(context_losses, r)));
    }
}

TEST_CASE("each value of cuBLAS and NVRTC maps to one fault")
{
    for (int value = 1; value <= 20; ++value) {
        check_fault(error_code(value, cublas_category()),
                    value == CUBLAS_STATUS_ALLOC_FAILED ? fault::busy : fault::library);
        const bool callers = value == NVRTC_ERROR_COMPILATION || value == NVRTC_ERROR_INVALID_INPUT ||
                             value == NVRTC_ERROR_INVALID_OPTION || value == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
        check_fault(error_code(value, nvrtc_category()), value == NVRTC_ERROR_OUT_OF_MEMORY ? fault::busy
                                                         : callers                          ? fault::caller
                                                                                            : fault::library);
    }
}

TEST_CASE("a message names the error")
{
    CHECK(make_error(CUBLAS_STATUS_NOT_INITIALIZED).message() == "CUBLAS_STATUS_NOT_INITIALIZED");
    CHECK(make_error(CUBLAS_STATUS_LICENSE_ERROR).message() == "CUBLAS_STATUS_LICENSE_ERROR");
    CHECK(make_error(NVRTC_ERROR_INVALID_OPTION).message() == "NVRTC_ERROR_INVALID_OPTION");
    CHECK(error_code(99, cublas_category()).message() == "cuBLAS error 99");
    CHECK(error_code(99, nvrtc_category()).message() == "NVRTC error 99");
    CHECK(make_error(CURAND_STATUS_OUT_OF_RANGE).message() == "CURAND_STATUS_OUT_OF_RANGE");
    CHECK(error_code(99, curand_category()).message() == "cuRAND error 99");
    for (const CUresult r : context_losses)
        CHECK_MESSAGE(make_error(r).message().find("CUDA_ERROR_") != std::string::npos, r);
    for (const CUresult r : device_losses)
        CHECK_MESSAGE(make_error(r).message().find("CUDA_ERROR_") != std::string::npos, r);
    CHECK(make_error(CUDA_ERROR_MISALIGNED_ADDRESS).message().find("CUDA_ERROR_MISALIGNED_ADDRESS") !=
          std::string::npos);
    if (!loaded_driver())
        CHECK(make_error(static_cast<CUresult>(998)).message() == "CUDA error 998");
}

TEST_CASE("no two errors of a library have the same message")
{
    for (const auto* library : vendor_libraries()) {
        const auto* category = &library->category();
        std::set<std::string> seen;
        for (int value = 0; value <= 1000; ++value) {
            const std::string message = category->message(value);
            // The driver has one text for all values that it does not know.
            if (!loaded_driver() || category != &driver_category())
                CHECK_MESSAGE(seen.insert(message).second, message);
        }
    }
}

TEST_CASE("messages use the driver's own text if a driver is loaded")
{
    const driver_api api = talking_driver();
    CHECK(vendor_text(&api, CUDA_ERROR_ILLEGAL_ADDRESS) == "a bad address (CUDA_ERROR_ILLEGAL_ADDRESS)");
    CHECK(vendor_text(&api, CUDA_ERROR_UNKNOWN) == "anything");
    CHECK(vendor_text(&api, static_cast<CUresult>(998)).empty());
    CHECK(vendor_text(nullptr, CUDA_ERROR_ILLEGAL_ADDRESS).empty());
}

TEST_CASE("asking for a message loads no driver")
{
    const driver_api* before = loaded_driver();
    CHECK_FALSE(make_error(CUDA_ERROR_ILLEGAL_ADDRESS).message().empty());
    CHECK(loaded_driver() == before);
}

TEST_SUITE_END();

} // namespace test_cuda_error
