#ifndef COACCEL_CUDA_LOADER_LIBRARY_SEARCH_HPP
#define COACCEL_CUDA_LOADER_LIBRARY_SEARCH_HPP

#include "cuda/loader/vendor_library.hpp"

#include <functional>
#include <string>
#include <vector>

namespace coaccel::cuda {

/// The search's view of the machine; tests replace it.
struct search_world {
    /// The value of an environment variable; empty if it is not set.
    std::function<std::string(const char* variable)> variable;
    /// The names in a folder, in any order; none if there is no such folder.
    std::function<std::vector<std::string>(const std::string& folder)> names;
    std::function<bool(const std::string& file)> exists;

    /// This process and its file system.
    static search_world real();
};

/// Where to look for a library.
struct search_plan {
    /// Arguments for dlopen, in this order. The loader searches for names without a folder.
    std::vector<std::string> candidates;
    /// The existing folders that were searched; for the error message.
    std::vector<std::string> folders;
};

/// `chosen` is the path set by use_library, or empty.
search_plan plan_search(const vendor_library_info& library, const std::string& chosen, const search_world& world);

} // namespace coaccel::cuda

#endif
