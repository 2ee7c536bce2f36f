#ifndef COACCEL_CORE_DURABLE_BUFFER_HPP
#define COACCEL_CORE_DURABLE_BUFFER_HPP

#include <coaccel/core/buffer.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace coaccel {
namespace detail {

/// What a device tells the owner of a durable buffer.
struct durable_status {
    std::atomic<bool> suspect{false};
};

} // namespace detail

/// Device memory that outlives the contexts of its device: after the loss of a context, its content is still there and
/// its refs are still valid. Made by device::async_alloc_durable. Move-only.
///
/// After a loss that may have left it half-written the buffer is *suspect*: ops that use it complete with
/// errc::buffer_suspect until device::async_trust or device::async_clear was called for it.
///
/// Exceptions: no function throws.
/// Lifetimes: it may be destroyed or reset while ops still use the memory; the memory is released after the last of
/// these ops, also if the device has no context. An op that is repeated after a loss does not find the memory any more
/// and completes with an error. It may outlive its device, which frees the memory when it stops.
template <element T>
class durable_buffer {
public:
    using value_type = T;

    durable_buffer() noexcept = default;
    /// Constructed by the device.
    durable_buffer(buffer<T> b, std::shared_ptr<const detail::durable_status> status) noexcept
        : buffer_(std::move(b)), status_(std::move(status))
    {}

    /// Releases the memory; this buffer is empty afterwards.
    void reset() noexcept
    {
        buffer_.reset();
        status_.reset();
    }

    std::size_t size() const noexcept { return buffer_.size(); }
    std::size_t size_bytes() const noexcept { return buffer_.size_bytes(); }
    explicit operator bool() const noexcept { return static_cast<bool>(buffer_); }

    /// Whether ops that use it complete with errc::buffer_suspect. Thread safety: any thread.
    bool suspect() const noexcept { return status_ && status_->suspect.load(std::memory_order_relaxed); }

    coaccel::ref<T> ref() const noexcept { return buffer_.ref(); } ///< A ref to all elements, for every generation.
    operator coaccel::ref<T>() const noexcept { return ref(); }    ///< A ref to all elements, for every generation.
    /// A ref to some of the elements; see ref::subspan.
    coaccel::ref<T> subspan(std::size_t offset, std::size_t count) const noexcept
    {
        return buffer_.subspan(offset, count);
    }

private:
    buffer<T> buffer_;
    std::shared_ptr<const detail::durable_status> status_;
};

} // namespace coaccel

#endif
