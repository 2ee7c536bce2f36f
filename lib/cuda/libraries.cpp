#include "cuda/loader/vendor_library.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace coaccel::cuda {
namespace {

struct choices {
    std::mutex mutex;
    std::map<vendor_library, std::string> paths;
};

choices& all_choices()
{
    // Never destroyed: a library may be opened during static destruction.
    static choices& instance = *new choices;
    return instance;
}

} // namespace

std::string_view to_string(vendor_library l) noexcept
{
    switch (l) {
    case vendor_library::driver: return "libcuda";
    case vendor_library::cublas: return "libcublas";
    case vendor_library::nvrtc: return "libnvrtc";
    case vendor_library::curand: return "libcurand";
    case vendor_library::cublaslt: return "libcublasLt";
    }
    return "unknown";
}

void use_library(vendor_library l, std::string path)
{
    choices& all = all_choices();
    const std::scoped_lock lock(all.mutex);
    all.paths[l] = std::move(path);
}

std::string chosen_path(vendor_library which)
{
    choices& all = all_choices();
    const std::scoped_lock lock(all.mutex);
    const auto found = all.paths.find(which);
    return found == all.paths.end() ? std::string() : found->second;
}

} // namespace coaccel::cuda
