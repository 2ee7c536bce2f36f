#ifndef COACCEL_CUDA_LOADER_DYNAMIC_LIBRARY_HPP
#define COACCEL_CUDA_LOADER_DYNAMIC_LIBRARY_HPP

#include "cuda/loader/vendor_library.hpp"

#include <string>

namespace coaccel::cuda {

/// An open vendor library. It is never closed: the vendors' libraries do not support that.
class dynamic_library {
public:
    /// Opens the first existing file in search order. Errors: errc::library_missing, with the files that were tried.
    static result<dynamic_library> open(const vendor_library_info& library);

    /// The path of the file that the loader opened.
    const std::string& path() const noexcept { return path_; }

    /// Fills a function pointer. Errors: errc::library_too_old, with the name of the missing symbol.
    template <class Function>
    error_code find(Function*& function, const char* symbol) const
    {
        auto found = find(symbol);
        if (!found)
            return found.error();
        function = reinterpret_cast<Function*>(found.value());
        return {};
    }

private:
    dynamic_library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

    result<void*> find(const char* symbol) const;

    void* handle_ = nullptr;
    std::string path_;
};

} // namespace coaccel::cuda

#endif
