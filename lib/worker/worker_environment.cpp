#include "worker/worker_environment.hpp"

#include "worker/child_process.hpp"

#ifdef COACCEL_HAS_CUDA_HEADERS
#include "cuda/load/library_search.hpp"
#endif

namespace coaccel::worker {
namespace {

#ifdef COACCEL_HAS_CUDA_HEADERS
// What the program chose comes before the variable in this process, so in the worker it takes the variable's place.
void put_chosen(std::vector<std::string>& environment, cuda::vendor_library which)
{
    const auto path = cuda::chosen_path(which);
    if (path.empty())
        return;
    const auto name = std::string(cuda::variable_of(which)) + '=';
    std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name); });
    environment.push_back(name + path);
}
#endif

} // namespace

std::vector<std::string> worker_environment()
{
    auto environment = child_process::minimal_environment();
#ifdef COACCEL_HAS_CUDA_HEADERS
    for (std::size_t i = 0; i < cuda::vendor_library_count; ++i)
        put_chosen(environment, static_cast<cuda::vendor_library>(i));
#endif
    return environment;
}

} // namespace coaccel::worker
