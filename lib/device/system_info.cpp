#include "posix/environment.hpp"

#include <coaccel/device/system_info.hpp>

#ifdef COACCEL_HAS_CUDA
#include "cuda/inspect.hpp"
#endif

#include <algorithm>
#include <cstdio>
#include <thread>

namespace coaccel {
namespace {

std::string gibibytes(std::uint64_t bytes)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
    return text;
}

std::string line(const gpu_report& gpu)
{
    return "  GPU " + std::to_string(gpu.ordinal) + ": " + gpu.name + ", compute capability " +
           std::to_string(gpu.compute_capability / 10) + '.' + std::to_string(gpu.compute_capability % 10) + ", " +
           std::to_string(gpu.multiprocessors) + " multiprocessors, " + gibibytes(gpu.memory) +
           (gpu.exports_memory ? ", can export memory\n" : ", cannot export memory\n");
}

std::string lines(const library_report& library)
{
    std::string text = "  " + library.name;
    if (!library.version.empty())
        text += ' ' + library.version;
    text += ": " + (library.path.empty() ? std::string("not available") : library.path) + '\n';
    if (!library.problem.empty())
        text += "    problem: " + library.problem + "\n    disables: " + library.disables + '\n';
    return text;
}

std::string best(const system_info& info)
{
    if (!info.gpus.empty())
        return "GPU " + std::to_string(info.gpus.front().ordinal);
    return info.host_backend ? "the CPU" : "not available";
}

} // namespace

system_info inspect_system()
{
    (void)detail::copy_environment();
    system_info info;
    info.coaccel_version = COACCEL_VERSION_STRING;
#ifdef COACCEL_HAS_HOST
    info.host_backend = true;
#endif
    info.host_threads = std::max(1u, std::thread::hardware_concurrency());
#ifdef COACCEL_HAS_CUDA
    cuda::inspect(info);
#endif
    return info;
}

std::string to_string(const system_info& info)
{
    std::string text = "coaccel " + info.coaccel_version + '\n';
    text += "host backend: ";
    text += info.host_backend ? std::to_string(info.host_threads) + " threads\n"
                              : std::string("not in this build; disables device_kind::host\n");
    text += "CUDA backend: ";
    text += info.cuda_built ? "in this build\n" : "not in this build; disables device_kind::cuda\n";
    for (const gpu_report& gpu : info.gpus)
        text += line(gpu);
    for (const library_report& library : info.libraries)
        text += lines(library);
    return text + "device_kind::best: " + best(info) + '\n';
}

} // namespace coaccel
