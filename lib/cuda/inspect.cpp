#include "cuda/inspect.hpp"

#include "cuda/driver/driver_api.hpp"
#include "cuda/driver/error.hpp"
#include "cuda/memory/exportable_memory.hpp"

#include <utility>

namespace coaccel::cuda {
namespace {

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
    if (const error_code ec = make_error(exportable_memory::find_support(api, device, gpu.exports_memory)))
        return ec;
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

/// `driver` is null if it cannot be used.
void add_gpus(system_info& into, library_report& report, const driver_api* driver)
{
    if (driver)
        report.problem = list_gpus(*driver, into.gpus);
    if (!into.gpus.empty())
        report.disables = report.problem.empty() ? report.disables : "the GPUs named there";
    else
        report.disables.append(into.host_backend ? "; device_kind::best uses the CPU" : " and device_kind::best");
}

} // namespace

void inspect(system_info& into)
{
    inspect(into, [](const vendor_library_info& library) { return library.load(); });
}

void inspect(system_info& into,
             const std::function<result<const function_table*>(const vendor_library_info& library)>& load)
{
    into.cuda_built = true;
    into.libraries.clear();
    for (const vendor_library_info* library : vendor_libraries()) {
        library_report& report = into.libraries.emplace_back();
        report.name = to_string(library->id);
        report.disables = library->disables;
        const auto loaded = load(*library);
        if (!loaded) {
            report.problem = loaded.error().message();
        } else {
            report.path = loaded.value()->path;
            report.version = library->version_text(loaded.value()->version);
        }
        if (library->id == vendor_library::driver)
            add_gpus(into, report, loaded ? static_cast<const driver_api*>(loaded.value()) : nullptr);
    }
}

} // namespace coaccel::cuda
