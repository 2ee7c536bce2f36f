#ifndef COACCEL_CUDA_LOAD_DYNAMIC_LIBRARY_HPP
#define COACCEL_CUDA_LOAD_DYNAMIC_LIBRARY_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/cuda/libraries.hpp>

#include <string>

namespace coaccel::cuda {

/// An open vendor library. It stays open: the vendors' libraries do not survive being closed.
class dynamic_library {
public:
    /// Opens the first file of the search order that there is. errc::library_missing names what was tried.
    static result<dynamic_library> open(vendor_library which);

    /// Where the loader found it.
    const std::string& path() const noexcept { return path_; }

    /// Fills a function pointer. errc::library_too_old names the symbol that is not there.
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
