#ifndef COACCEL_CUDA_DRIVER_NVTX_RANGE_HPP
#define COACCEL_CUDA_DRIVER_NVTX_RANGE_HPP

#include <string>

namespace coaccel::cuda {

/// A range of the NVTX domain "coaccel" on this thread, from the construction to the destruction. Without a profiler,
/// and in a build without the header of NVTX, it does nothing.
class [[nodiscard]] nvtx_range {
public:
    nvtx_range(bool enabled, const std::string& name) noexcept : enabled_(enabled)
    {
        if (enabled_)
            push(name.c_str());
    }
    nvtx_range(const nvtx_range&) = delete;
    nvtx_range& operator=(const nvtx_range&) = delete;
    ~nvtx_range()
    {
        if (enabled_)
            pop();
    }

private:
    static void push(const char* name) noexcept;
    static void pop() noexcept;

    const bool enabled_;
};

} // namespace coaccel::cuda

#endif
