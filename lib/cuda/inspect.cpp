#include "cuda/inspect.hpp"

#include "cuda/blas/cublas_api.hpp"
#include "cuda/driver/error.hpp"
#include "cuda/jit/nvrtc_api.hpp"
#include "cuda/loader/table.hpp"

#include <utility>

namespace coaccel::cuda {
namespace {

template <class Api>
library_report report(vendor_library which, const result<const Api*>& loaded, std::string disables)
{
    library_report r;
    r.name = to_string(which);
    r.disables = std::move(disables);
    if (loaded)
        r.path = loaded.value()->path;
    else
        r.problem = loaded.error().message();
    return r;
}

std::string cublas_version_text(int version)
{
    return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
           std::to_string(version % 100);
}

result<int> attribute(const driver_api& api, CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    if (const error_code ec = make_error(api.cuDeviceGetAttribute(&value, which, device)))
        return ec;
    return value;
}

result<gpu_report> describe(const driver_api& api, int ordinal)
{
    gpu_report gpu;
    gpu.ordinal = ordinal;
    CUdevice device = 0;
    if (const error_code ec = make_error(api.cuDeviceGet(&device, ordinal)))
        return ec;
    char name[256] = {};
    if (const error_code ec = make_error(api.cuDeviceGetName(name, sizeof(name) - 1, device)))
        return ec;
    gpu.name = name;
    std::size_t bytes = 0;
    if (const error_code ec = make_error(api.cuDeviceTotalMem(&bytes, device)))
        return ec;
    gpu.memory = bytes;
    BOOST_OUTCOME_TRY(const int major, attribute(api, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    BOOST_OUTCOME_TRY(const int minor, attribute(api, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    gpu.compute_capability = major * 10 + minor;
    BOOST_OUTCOME_TRY(gpu.multiprocessors, attribute(api, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    return gpu;
}

// Returns the problem, or an empty string.
std::string list_gpus(const driver_api& api, std::vector<gpu_report>& gpus)
{
    int count = 0;
    if (const error_code ec = make_error(api.cuDeviceGetCount(&count)))
        return ec.message();
    if (count == 0)
        return "the driver finds no GPU";
    std::string problem;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        if (auto gpu = describe(api, ordinal))
            gpus.push_back(std::move(gpu).value());
        else
            problem.append(problem.empty() ? "GPU " : "; GPU ")
                .append(std::to_string(ordinal) + ": " + gpu.error().message());
    }
    return problem;
}

} // namespace

void inspect(system_info& into)
{
    inspect(into, load_driver(), load_cublas(), load_nvrtc());
}

void inspect(system_info& into, const result<const driver_api*>& driver, const result<const cublas_api*>& cublas,
             const result<const nvrtc_api*>& nvrtc)
{
    into.cuda_built = true;

    library_report d = report(vendor_library::driver, driver,
                              into.host_backend ? "device_kind::cuda; device_kind::best uses the CPU"
                                                : "device_kind::cuda and device_kind::best");
    if (driver) {
        d.version = version_text(driver.value()->version);
        d.problem = list_gpus(*driver.value(), into.gpus);
        if (!d.problem.empty() && !into.gpus.empty())
            d.disables = "the GPUs named there";
    }
    library_report b = report(vendor_library::cublas, cublas, "blas::* on GPUs");
    if (cublas)
        b.version = cublas_version_text(cublas.value()->version);
    library_report n = report(vendor_library::nvrtc, nvrtc, "async_compile");
    if (nvrtc)
        n.version = version_text(nvrtc.value()->version);

    into.libraries = {std::move(d), std::move(b), std::move(n)};
}

} // namespace coaccel::cuda
