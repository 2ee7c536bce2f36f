#ifndef COACCEL_CUDA_MEMORY_EXPORTABLE_MEMORY_HPP
#define COACCEL_CUDA_MEMORY_EXPORTABLE_MEMORY_HPP

#include "cuda/driver/driver_threads.hpp"
#include "cuda/memory/device_memory.hpp"
#include "cuda/memory/memory_mapper.hpp"
#include "posix/unique_fd.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <functional>
#include <map>
#include <mutex>

namespace coaccel::cuda {

/// Device memory that outlives the process: made here and then exported, or imported from a descriptor. It exists as
/// long as a mapping or a descriptor of it does, in any process.
///
/// Use from one thread at a time, with the context current. New memory is made on the thread pool, because the driver
/// may have to wait or to clear it.
class exportable_memory {
public:
    using check_result = std::function<error_code(CUresult)>;

    /// Finds out whether memory of the device can be exported. Needs no context.
    static CUresult find_support(const driver_api& api, CUdevice device, bool& supported) noexcept
    {
        return memory_mapper::find_support(api, device, supported);
    }

    /// `limit`: memory counts towards its limit. `check` is called with the result of every driver call, and
    /// `on_change` when `allocate` is worth another try; both from any thread.
    exportable_memory(const driver_api& api, driver_threads& helpers, device_memory& limit, check_result check,
                      std::function<void()> on_change);
    exportable_memory(const exportable_memory&) = delete;
    exportable_memory& operator=(const exportable_memory&) = delete;

    /// Call first, if it is supported.
    error_code use(CUdevice device) noexcept;
    bool available() const noexcept { return available_; }

    /// Null: not yet. Errors: errc::out_of_memory, after unused memory was given up; those of the driver.
    result<void*> allocate(std::size_t bytes);

    /// Returns a descriptor of allocated memory. From then on the device has this access to it in this process.
    ///
    /// Errors: errc::invalid_argument for memory that was exported or imported; errc::out_of_memory if no descriptor is
    /// left; those of the driver. The memory can still be used.
    result<detail::unique_fd> export_memory(void* memory, memory_access access);

    /// Maps the memory of a descriptor.
    ///
    /// Errors: errc::invalid_argument if the descriptor is not one of memory of this device and size, with the driver's
    /// reason; errc::out_of_memory.
    result<void*> import_memory(const detail::unique_fd& descriptor, std::size_t bytes, memory_access access);

    /// Preconditions: no work uses the memory.
    void release(void* memory) noexcept;

    /// Releases everything. Preconditions: the thread pool has stopped; the context is healthy and idle.
    void destroy() noexcept;

private:
    using outside = device_memory::outside;

    /// The allocation of memory of some size on the thread pool.
    struct attempt {
        bool ended = false;
        CUresult result = CUDA_SUCCESS;
        mapped_memory made{};
    };

    struct block {
        mapped_memory memory;
        outside counted;
    };

    void make(std::size_t bytes) noexcept;
    result<void*> add(mapped_memory memory, outside counted);
    error_code check(const mapping_result& r) { return check_(r.result); }
    error_code refusal(const mapping_result& r);

    driver_threads& helpers_;
    device_memory& limit_;
    memory_mapper mapper_;
    const check_result check_;
    const std::function<void()> on_change_;
    bool available_ = false;
    std::mutex mutex_;
    /// By size. Guarded by the mutex, as the only member that the thread pool uses.
    std::map<std::size_t, attempt> attempts_;
    boost::unordered_flat_map<void*, block> all_;
};

} // namespace coaccel::cuda

#endif
