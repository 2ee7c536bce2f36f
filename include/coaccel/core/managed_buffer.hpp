#ifndef COACCEL_CORE_MANAGED_BUFFER_HPP
#define COACCEL_CORE_MANAGED_BUFFER_HPP

#include <coaccel/core/buffer.hpp>

#include <span>
#include <utility>

namespace coaccel {

/// A buffer that the host can access too: the driver moves its pages to where they are used. Move-only.
/// memory::prefetch and memory::advise tell the driver where the pages are needed.
///
/// Preconditions: the host accesses the elements only while no op that was started and has not completed uses them.
/// Exceptions: no function throws.
template <element T>
class managed_buffer {
public:
    using value_type = T;

    managed_buffer() noexcept = default;
    /// Constructed by the device.
    managed_buffer(buffer<T> b, T* host) noexcept : buffer_(std::move(b)), host_(host) {}

    /// Takes over the memory of `other`.
    managed_buffer(managed_buffer&& other) noexcept
        : buffer_(std::move(other.buffer_)), host_(std::exchange(other.host_, nullptr))
    {}

    managed_buffer& operator=(managed_buffer&& other) noexcept
    {
        buffer_ = std::move(other.buffer_);
        host_ = std::exchange(other.host_, nullptr);
        return *this;
    }

    /// Releases the memory; this buffer is empty afterwards.
    void reset() noexcept
    {
        host_ = nullptr;
        buffer_.reset();
    }

    std::size_t size() const noexcept { return buffer_.size(); }
    explicit operator bool() const noexcept { return static_cast<bool>(buffer_); }

    T* data() const noexcept { return host_; }                     ///< The host address of the first element.
    std::span<T> span() const noexcept { return {host_, size()}; } ///< All elements, for the host.

    coaccel::ref<T> ref() const noexcept { return buffer_.ref(); } ///< A ref to all elements, for ops.
    operator coaccel::ref<T>() const noexcept { return ref(); }    ///< A ref to all elements, for ops.

private:
    buffer<T> buffer_;
    T* host_ = nullptr;
};

} // namespace coaccel

#endif
