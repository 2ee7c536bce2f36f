#ifndef COACCEL_CUDA_LOAD_LIBRARY_SEARCH_HPP
#define COACCEL_CUDA_LOAD_LIBRARY_SEARCH_HPP

#include <coaccel/cuda/libraries.hpp>

#include <functional>
#include <string>
#include <vector>

namespace coaccel::cuda {

/// What the search may know of the machine.
struct search_world {
    /// The value of an environment variable; empty when it is not set.
    std::function<std::string(const char* variable)> variable;
    /// The names in a folder, in any order; none when there is no such folder.
    std::function<std::vector<std::string>(const std::string& folder)> names;
    std::function<bool(const std::string& file)> exists;

    /// This process and its file system.
    static search_world real();
};

/// Where a library may be.
struct search_plan {
    /// What to give to the loader, in this order. Names without a folder are looked up by the loader.
    std::vector<std::string> candidates;
    /// The folders that were there to be looked into, for whoever asks why nothing was found.
    std::vector<std::string> folders;
};

/// `chosen` is what the program asked for, empty for nothing.
search_plan plan_search(vendor_library which, const std::string& chosen, const search_world& world);

/// The environment variable that names the library's file.
COACCEL_DECL const char* variable_of(vendor_library which) noexcept;

/// What use_library was last told.
COACCEL_DECL std::string chosen_path(vendor_library which);

} // namespace coaccel::cuda

#endif
