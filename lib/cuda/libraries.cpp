#include "cuda/loader/library_search.hpp"

#include <coaccel/cuda/libraries.hpp>

#include <array>
#include <mutex>
#include <utility>

namespace coaccel::cuda {
namespace {

struct choices {
    std::mutex mutex;
    std::array<std::string, vendor_library_count> paths;
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
    }
    return "unknown";
}

void use_library(vendor_library l, std::string path)
{
    choices& all = all_choices();
    const std::scoped_lock lock(all.mutex);
    if (const auto place = static_cast<std::size_t>(l); place < all.paths.size())
        all.paths[place] = std::move(path);
}

std::string chosen_path(vendor_library which)
{
    choices& all = all_choices();
    const std::scoped_lock lock(all.mutex);
    const auto place = static_cast<std::size_t>(which);
    return place < all.paths.size() ? all.paths[place] : std::string();
}

} // namespace coaccel::cuda
