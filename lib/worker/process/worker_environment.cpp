#include "worker/process/worker_environment.hpp"

#ifdef COACCEL_HAS_CUDA_HEADERS
#include "cuda/loader/vendor_library.hpp"
#endif

#include <algorithm>
#include <string>
#include <string_view>

namespace coaccel::worker {
namespace {

bool is_needed(std::string_view name)
{
    // VIRTUAL_ENV and CONDA_PREFIX are used by the search for vendor libraries in Python wheels.
    static constexpr std::string_view names[] = {"PATH",          "HOME",           "LANG",         "LD_LIBRARY_PATH",
                                                 "TMPDIR",        "XDG_CACHE_HOME", "ASAN_OPTIONS", "TSAN_OPTIONS",
                                                 "UBSAN_OPTIONS", "LSAN_OPTIONS",   "VIRTUAL_ENV",  "CONDA_PREFIX"};
    static constexpr std::string_view prefixes[] = {"CUDA_", "NVIDIA_", "COACCEL_"};
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    return std::ranges::find(names, name) != std::end(names) || std::ranges::any_of(prefixes, begins);
}

#ifdef COACCEL_HAS_CUDA_HEADERS
// In this process the program's choice takes precedence over the variable, so in the worker it replaces the variable.
void put_chosen(detail::environment& variables, cuda::vendor_library which)
{
    const auto path = cuda::chosen_path(which);
    if (path.empty())
        return;
    const auto name = cuda::variable_of(which) + '=';
    std::erase_if(variables, [&](const std::string& entry) { return entry.starts_with(name); });
    variables.push_back(name + path);
}
#endif

} // namespace

detail::environment needed_variables(const detail::environment& of_process)
{
    detail::environment needed;
    for (const std::string_view entry : of_process)
        if (is_needed(entry.substr(0, entry.find('='))))
            needed.emplace_back(entry);
    return needed;
}

detail::environment worker_environment(const detail::environment& of_process)
{
    auto variables = needed_variables(of_process);
#ifdef COACCEL_HAS_CUDA_HEADERS
    for (const auto* library : cuda::vendor_libraries())
        put_chosen(variables, library->id);
#endif
    return variables;
}

} // namespace coaccel::worker
