#ifndef COACCEL_CORE_PINNED_BUFFER_HPP
#define COACCEL_CORE_PINNED_BUFFER_HPP

#include <coaccel/core/backend.hpp>

#include <memory>
#include <span>
#include <utility>

namespace coaccel {

/// Host memory that a device copies from and to directly, at full speed. A contiguous range of T. Move-only.
///
/// Its elements are not initialised. It may outlive its device; it is ordinary memory then.
///
/// Exceptions: no function throws.
template <element T>
class pinned_buffer {
public:
    using value_type = T;

    pinned_buffer() noexcept = default;
    /// Constructed by the device.
    pinned_buffer(T* data, std::size_t size, std::shared_ptr<detail::pinned_memory> owner) noexcept
        : data_(data), size_(size), owner_(std::move(owner))
    {}

    /// Takes over the memory of `other`.
    pinned_buffer(pinned_buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
          owner_(std::move(other.owner_))
    {}

    pinned_buffer& operator=(pinned_buffer&& other) noexcept
    {
        if (this != &other) {
            reset();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            owner_ = std::move(other.owner_);
        }
        return *this;
    }

    ~pinned_buffer() { reset(); }

    /// Releases the memory; this buffer is empty afterwards.
    ///
    /// Preconditions: no transfer uses the memory.
    void reset() noexcept
    {
        size_ = 0;
        if (auto owner = std::exchange(owner_, nullptr))
            owner->release(std::exchange(data_, nullptr));
    }

    T* data() const noexcept { return data_; } ///< The first element.
    std::size_t size() const noexcept { return size_; }
    std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    bool empty() const noexcept { return size_ == 0; }
    T* begin() const noexcept { return data_; }                      ///< The first element.
    T* end() const noexcept { return data_ + size_; }                ///< One past the last element.
    T& operator[](std::size_t i) const noexcept { return data_[i]; } ///< Element i.
    std::span<T> span() const noexcept { return {data_, size_}; }    ///< All elements.
    explicit operator bool() const noexcept { return owner_ != nullptr; }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::shared_ptr<detail::pinned_memory> owner_;
};

} // namespace coaccel

#endif
