#ifndef COACCEL_SERVE_VERSION_LEASE_HPP
#define COACCEL_SERVE_VERSION_LEASE_HPP

#include <coaccel/serve/detail/version_maker_of.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace coaccel::serve {

/// The use of a version by one request: `lease->async_run(...)`. The version stays loaded until the lease has ended, or
/// until drain_limit has passed after another version has replaced it. Move-only.
///
/// Lifetimes: the version exists at least as long as the lease, also after it was shut down.
template <class T>
class version_lease {
public:
    version_lease() noexcept = default; ///< Of no version.
    /// Called by hot_swap::pick.
    version_lease(detail::hot_swap_ptr core, detail::picked_version picked) noexcept
        : core_(std::move(core)), what_(std::static_pointer_cast<const detail::version_of<T>>(std::move(picked.what))),
          version_(picked.version)
    {}
    version_lease(version_lease&& other) noexcept = default;
    version_lease& operator=(version_lease&& other) noexcept
    {
        if (this != &other) {
            release();
            core_ = std::move(other.core_);
            what_ = std::move(other.what_);
            version_ = other.version_;
        }
        return *this;
    }
    ~version_lease() { release(); }

    const T& operator*() const noexcept { return what_->what; }   ///< The version.
    const T* operator->() const noexcept { return &what_->what; } ///< The version.
    std::uint64_t version() const noexcept { return version_; }   ///< Its number.
    explicit operator bool() const noexcept { return core_ != nullptr; }

    /// The request has ended with this outcome, by which the version is judged. The lease is of no version afterwards.
    void ended(const error_code& ec) noexcept { end(&ec); }

    /// The request has ended without an outcome. The lease is of no version afterwards.
    void release() noexcept { end(nullptr); }

    /// For hot_swap: the version beyond the end of the lease.
    std::shared_ptr<const detail::version_of<T>> keep() const noexcept { return what_; }

private:
    void end(const error_code* ec) noexcept
    {
        const auto core = std::move(core_);
        // Before, so that the hot_swap destroys the version, in its turn, and not the request.
        what_.reset();
        if (core)
            detail::request_ended(core, version_, ec);
    }

    detail::hot_swap_ptr core_;
    std::shared_ptr<const detail::version_of<T>> what_;
    std::uint64_t version_ = 0;
};

} // namespace coaccel::serve

#endif
