#ifndef COACCEL_CORE_MANAGED_BUFFER_HPP
#define COACCEL_CORE_MANAGED_BUFFER_HPP

#include <coaccel/core/buffer.hpp>

#include <span>
#include <utility>

namespace coaccel {

/// A buffer that the host reaches too: the driver moves its pages to whoever uses them. Move-only.
///
/// Preconditions: the host touches the elements only while no op that was started and has not completed uses them.
/// memory::prefetch and memory::advise say where the pages are wanted.
template <element T>
class managed_buffer {
public:
    using value_type = T;

    managed_buffer() noexcept = default;
    /// Made by the device.
    managed_buffer(buffer<T> b, T* host) noexcept : buffer_(std::move(b)), host_(host) {}

    /// Takes over what the other one has.
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

    T* data() const noexcept { return host_; }                     ///< Where the host finds the first element.
    std::span<T> span() const noexcept { return {host_, size()}; } ///< All elements, for the host.

    coaccel::ref<T> ref() const noexcept { return buffer_.ref(); } ///< Names all of it, for ops.
    operator coaccel::ref<T>() const noexcept { return ref(); }    ///< Names all of it, for ops.

private:
    buffer<T> buffer_;
    T* host_ = nullptr;
};

} // namespace coaccel

#endif
