#ifndef COACCEL_CUDA_LANDING_MARKS_HPP
#define COACCEL_CUDA_LANDING_MARKS_HPP

#include "cuda/load/driver_api.hpp"

#include <cstddef>
#include <cstdint>

namespace coaccel::cuda {

/// Words of host memory for streams to write numbers to. To look at one takes nanoseconds where an event takes
/// microseconds, but to have it written costs the stream more than an event: good for work that is alone on its stream.
class landing_marks {
public:
    /// The word of one stream; empty where there is none.
    struct mark {
        std::uint32_t* host = nullptr;
        CUdeviceptr device = 0;
    };

    explicit landing_marks(const driver_api& api) noexcept : api_(api) {}
    landing_marks(const landing_marks&) = delete;
    landing_marks& operator=(const landing_marks&) = delete;
    ~landing_marks();

    /// Registers the memory. When the driver will not have it there are no marks; there are events for that.
    void map() noexcept;

    mark take() noexcept;

    /// Before the context goes.
    void destroy() noexcept;
    /// The context is dead, and what it may still write to stays for good.
    void abandon() noexcept { page_ = nullptr; }

private:
    const driver_api& api_;
    void* page_ = nullptr;
    CUdeviceptr device_ = 0;
    std::size_t taken_ = 0;
};

} // namespace coaccel::cuda

#endif
