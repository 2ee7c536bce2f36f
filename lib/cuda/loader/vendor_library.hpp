#ifndef COACCEL_CUDA_LOADER_VENDOR_LIBRARY_HPP
#define COACCEL_CUDA_LOADER_VENDOR_LIBRARY_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/cuda/libraries.hpp>

#include <span>
#include <string>

namespace coaccel::cuda {

/// The functions of a vendor library that coaccel calls: each library has a struct derived from this one, with a
/// pointer to each of them. Tests fill it with their own functions.
struct function_table {
    /// The file that the loader opened.
    std::string path;
    /// The version as the library reports it.
    int version = 0;
};

/// Everything that searching, loading, reporting and translating errors need to know about a vendor library.
struct vendor_library_info {
    vendor_library id;
    /// The file names, the preferred one first.
    std::span<const char* const> sonames;
    /// The folder of its Python wheel; null for the driver's library, which comes with neither toolkits nor wheels.
    const char* wheel;
    /// The features that are unavailable without it.
    const char* disables;
    std::string (*version_text)(int version);
    const boost::system::error_category& (*category)() noexcept;
    /// Opens the library if it is not open yet. May take long.
    result<const function_table*> (*load)();
};

/// All vendor libraries, in the order of the enumeration.
COACCEL_DECL std::span<const vendor_library_info* const> vendor_libraries() noexcept;

/// The environment variable that names the library's file: COACCEL_ and the library's name in upper case.
COACCEL_DECL std::string variable_of(vendor_library which);

/// The path last passed to use_library.
COACCEL_DECL std::string chosen_path(vendor_library which);

} // namespace coaccel::cuda

#endif
