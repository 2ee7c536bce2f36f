#ifndef COACCEL_CORE_BUFFER_HPP
#define COACCEL_CORE_BUFFER_HPP

#include <coaccel/core/ref.hpp>

#include <memory>
#include <utility>

namespace coaccel {
namespace detail {

/// Releases device memory; implemented by the device. Called once, from any thread; never throws.
class COACCEL_DECL buffer_owner {
public:
    virtual void release(const any_ref& ref) noexcept = 0;

protected:
    ~buffer_owner() = default;
};

} // namespace detail

/// Owns device memory for elements of type T. Move-only.
///
/// Exceptions: no function throws.
/// Lifetimes: it may be destroyed or reset while ops still use the memory; the memory is released after the last of
/// these ops. It may outlive its device.
template <element T>
class buffer {
public:
    using value_type = T;

    buffer() noexcept = default;
    /// Constructed by the device.
    buffer(any_ref raw, std::shared_ptr<detail::buffer_owner> owner) noexcept : raw_(raw), owner_(std::move(owner)) {}

    buffer(buffer&& other) noexcept : raw_(std::exchange(other.raw_, any_ref{})), owner_(std::move(other.owner_)) {}

    buffer& operator=(buffer&& other) noexcept
    {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, any_ref{});
            owner_ = std::move(other.owner_);
        }
        return *this;
    }

    ~buffer() { reset(); }

    /// Releases the memory; this buffer is empty afterwards.
    void reset() noexcept
    {
        if (auto owner = std::exchange(owner_, nullptr))
            owner->release(std::exchange(raw_, any_ref{}));
    }

    std::size_t size() const noexcept { return raw_.size; }
    std::size_t size_bytes() const noexcept { return raw_.size * sizeof(T); }
    explicit operator bool() const noexcept { return owner_ != nullptr; }

    coaccel::ref<T> ref() const noexcept { return coaccel::ref<T>::from_raw(raw_); } ///< A ref to all elements.
    operator coaccel::ref<T>() const noexcept { return ref(); }                      ///< A ref to all elements.
    /// A ref to some of the elements; see ref::subspan.
    coaccel::ref<T> subspan(std::size_t offset, std::size_t count) const noexcept
    {
        return ref().subspan(offset, count);
    }

private:
    any_ref raw_{.type = dtype_v<T>};
    std::shared_ptr<detail::buffer_owner> owner_;
};

} // namespace coaccel

#endif
