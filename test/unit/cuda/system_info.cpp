#include "cuda/blas/cublas_api.hpp"
#include "cuda/blas/cublaslt_api.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/inspect.hpp"
#include "cuda/jit/nvrtc_api.hpp"
#include "cuda/rand/curand_api.hpp"

#include <coaccel/device/system_info.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <type_traits>

namespace test_cuda_system_info {

namespace {

using namespace coaccel;
using namespace coaccel::cuda;

bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

/// A driver with this many GPUs, one of which may be broken.
struct fake_machine {
    static inline int gpus = 0;
    static inline int broken = -1;
    static inline CUresult count_result = CUDA_SUCCESS;
    /// An attribute that is zero.
    static inline CUdevice_attribute without{};

    explicit fake_machine(int count)
    {
        gpus = count;
        broken = -1;
        count_result = CUDA_SUCCESS;
        without = {};

        driver.path = "/fake/libcuda.so.1";
        driver.version = 12090;
        driver.cuDeviceGetCount = [](int* n) {
            *n = gpus;
            return count_result;
        };
        driver.cuDeviceGet = [](CUdevice* device, int ordinal) {
            *device = ordinal + 10;
            return CUDA_SUCCESS;
        };
        driver.cuDeviceGetName = [](char* name, int length, CUdevice device) {
            std::strncpy(name, device == 10 ? "Fake A" : "Fake B", static_cast<std::size_t>(length));
            return CUDA_SUCCESS;
        };
        driver.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) {
            *bytes = std::size_t(3) << 29;
            return CUDA_SUCCESS;
        };
        driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice device) {
            if (device == broken + 10)
                return CUDA_ERROR_DEVICE_UNAVAILABLE;
            *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 10
                     : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 3
                     : which == without                                      ? 0
                                                                             : 42;
            return CUDA_SUCCESS;
        };
        cublas.path = "/fake/libcublas.so.13";
        cublas.version = 130102;
        nvrtc.path = "/fake/libnvrtc.so.13";
        nvrtc.version = 13020;
        curand.path = "/fake/libcurand.so.10";
        curand.version = 100400;
        cublaslt.path = "/fake/libcublasLt.so.13";
        cublaslt.version = 130103;
    }

    system_info inspect() const
    {
        system_info info;
        info.coaccel_version = "1.2.3";
        info.host_backend = true;
        info.host_threads = 4;
        cuda::inspect(info, [this](const vendor_library_info& library) -> result<const function_table*> {
            switch (library.id) {
            case vendor_library::driver: return &driver;
            case vendor_library::cublas: return &cublas;
            case vendor_library::nvrtc: return &nvrtc;
            case vendor_library::curand: return &curand;
            case vendor_library::cublaslt: return &cublaslt;
            }
            return errc::library_missing;
        });
        return info;
    }

    driver_api driver;
    cublas_api cublas;
    nvrtc_api nvrtc;
    curand_api curand;
    cublaslt_api cublaslt;
};

} // namespace

TEST_SUITE_BEGIN("system_info");

TEST_CASE("a complete machine is described in full")
{
    const system_info info = fake_machine(2).inspect();
    CHECK(info.cuda_built);
    REQUIRE(info.gpus.size() == 2);
    CHECK(info.gpus[0].name == "Fake A");
    CHECK(info.gpus[1].name == "Fake B");
    CHECK(info.gpus[1].ordinal == 1);
    CHECK(info.gpus[1].compute_capability == 103);
    CHECK(info.gpus[1].multiprocessors == 42);
    CHECK(info.gpus[1].memory == std::uint64_t(3) << 29);

    CHECK(to_string(info) ==
          "coaccel 1.2.3\n"
          "host backend: 4 threads\n"
          "CUDA backend: in this build\n"
          "  GPU 0: Fake A, compute capability 10.3, 42 multiprocessors, 1.5 GiB, cannot export memory\n"
          "  GPU 1: Fake B, compute capability 10.3, 42 multiprocessors, 1.5 GiB, cannot export memory\n"
          "  libcuda 12.9: /fake/libcuda.so.1\n"
          "  libcublas 13.1.2: /fake/libcublas.so.13\n"
          "  libnvrtc 13.2: /fake/libnvrtc.so.13\n"
          "  libcurand 10.4.0: /fake/libcurand.so.10\n"
          "  libcublasLt 13.1.3: /fake/libcublasLt.so.13\n"
          "device_kind::best: GPU 0\n");
}

TEST_CASE("a GPU can export memory if the driver has all functions for it, and the GPU both attributes")
{
    fake_machine machine(1);
    const auto anything = [] {};
    const auto fill = [&](auto& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(+anything);
    };
#define FILL(function) fill(machine.driver.function);
    COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(FILL)
#undef FILL
    CHECK(machine.inspect().gpus.at(0).exports_memory);
    CHECK(contains(to_string(machine.inspect()), "1.5 GiB, can export memory\n"));
    fake_machine::without = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    CHECK_FALSE(machine.inspect().gpus.at(0).exports_memory);
    fake_machine::without = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    CHECK_FALSE(machine.inspect().gpus.at(0).exports_memory);
    fake_machine::without = {};
#define CHECK_WITHOUT(function)                                                                                        \
    machine.driver.function = nullptr;                                                                                 \
    CHECK_FALSE(machine.inspect().gpus.at(0).exports_memory);                                                          \
    fill(machine.driver.function);
    COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(CHECK_WITHOUT)
#undef CHECK_WITHOUT
    CHECK(machine.inspect().gpus.at(0).exports_memory);
}

TEST_CASE("the report names missing libraries and the features that they disable")
{
    system_info info;
    info.coaccel_version = "1.2.3";
    info.host_backend = true;
    info.host_threads = 1;
    const auto missing = [](const vendor_library_info& library) -> result<const function_table*> {
        return make_error_with_message(errc::library_missing, "no " + std::string(to_string(library.id)) + " here");
    };
    cuda::inspect(info, missing);
    CHECK(info.gpus.empty());
    CHECK(to_string(info) == "coaccel 1.2.3\n"
                             "host backend: 1 threads\n"
                             "CUDA backend: in this build\n"
                             "  libcuda: not available\n"
                             "    problem: no libcuda here\n"
                             "    disables: device_kind::cuda; device_kind::best uses the CPU\n"
                             "  libcublas: not available\n"
                             "    problem: no libcublas here\n"
                             "    disables: blas::* on GPUs\n"
                             "  libnvrtc: not available\n"
                             "    problem: no libnvrtc here\n"
                             "    disables: async_compile, and prim::* on GPUs\n"
                             "  libcurand: not available\n"
                             "    problem: no libcurand here\n"
                             "    disables: rand::* on GPUs\n"
                             "  libcublasLt: not available\n"
                             "    problem: no libcublasLt here\n"
                             "    disables: blas::matmul* on GPUs\n"
                             "device_kind::best: the CPU\n");

    info.host_backend = false;
    cuda::inspect(info, missing);
    const std::string without_host = to_string(info);
    CHECK(contains(without_host, "disables: device_kind::cuda and device_kind::best\n"));
    CHECK(contains(without_host, "device_kind::best: not available\n"));
}

TEST_CASE("the report of a build without backends says so")
{
    system_info info;
    info.coaccel_version = "1.2.3";
    CHECK(to_string(info) == "coaccel 1.2.3\n"
                             "host backend: not in this build; disables device_kind::host\n"
                             "CUDA backend: not in this build; disables device_kind::cuda\n"
                             "device_kind::best: not available\n");
}

TEST_CASE("a driver that lists no GPUs is reported as a problem")
{
    fake_machine machine(0);
    CHECK(machine.inspect().libraries.front().problem == "the driver finds no GPU");
    CHECK(contains(to_string(machine.inspect()), "device_kind::best: the CPU\n"));

    machine.count_result = CUDA_ERROR_DEINITIALIZED;
    CHECK(contains(machine.inspect().libraries.front().problem, "CUDA_ERROR_DEINITIALIZED"));
}

TEST_CASE("a broken GPU does not hide the others")
{
    fake_machine machine(3);
    machine.broken = 1;
    const system_info info = machine.inspect();
    REQUIRE(info.gpus.size() == 2);
    CHECK(info.gpus[1].ordinal == 2);
    const library_report& driver = info.libraries.front();
    CHECK(contains(driver.problem, "GPU 1: "));
    CHECK(contains(driver.problem, "CUDA_ERROR_DEVICE_UNAVAILABLE"));
    CHECK(driver.disables == "the GPUs named there");
}

TEST_CASE("this machine can be inspected, with or without a GPU")
{
    const system_info info = inspect_system();
    CHECK(info.coaccel_version == COACCEL_VERSION_STRING);
    CHECK(info.cuda_built);
    CHECK(info.host_threads >= 1);
    REQUIRE(info.libraries.size() == vendor_libraries().size());
    for (const library_report& library : info.libraries) {
        CAPTURE(library.name);
        CHECK_FALSE(library.disables.empty());
        CHECK((library.path.empty() || library.path.front() == '/'));
        CHECK((library.path.empty() ? !library.problem.empty() : !library.version.empty()));
        CHECK(contains(to_string(info), "  " + library.name));
    }
    CHECK(info.gpus.empty() == !info.libraries.front().problem.empty());
}

TEST_SUITE_END();

} // namespace test_cuda_system_info
