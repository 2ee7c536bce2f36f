#ifndef COACCEL_DEVICE_DEVICE_WITH_HPP
#define COACCEL_DEVICE_DEVICE_WITH_HPP

#include <coaccel/device/device.hpp>

#include <cstddef>
#include <utility>

namespace coaccel {

/// A device together with options for the ops that are started through it: `gpu.with(options)`. Keeps the device as a
/// copy of it does. Its functions are those of `device`.
class device_with {
public:
    /// Made by device::with.
    device_with(device gpu, const exec_options& options) noexcept : device_(std::move(gpu)), options_(options) {}

    /// What its operations are run with.
    const exec_options& options() const noexcept { return options_; }

    /// \copydoc device::async_exec
    template <class Op, class Token = default_token>
    auto async_exec(const Op& op, Token&& token = {}) const
    {
        return device_.async_exec(op, options_, static_cast<Token&&>(token));
    }

    /// \copydoc device::async_submit
    template <class... Args>
    auto async_submit(Args&&... args) const
    {
        return detail::split_submit(device_.core(), options_, static_cast<Args&&>(args)...);
    }

    /// \copydoc device::async_alloc
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, init content, Token&& token = {}) const
    {
        return device_.async_alloc<T>(count, content, options_, static_cast<Token&&>(token));
    }

    /// \copydoc device::async_alloc
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, Token&& token = {}) const
    {
        return device_.async_alloc<T>(count, init::none, options_, static_cast<Token&&>(token));
    }

    /// \copydoc device::async_alloc_managed
    template <element T, asio::completion_token_for<void(error_code, managed_buffer<T>)> Token = default_token>
    auto async_alloc_managed(std::size_t count, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, managed_buffer<T>)>(
            detail::initiate_request<detail::managed_request<T>>{device_.core()}, token, count, options_);
    }

    /// \copydoc device::async_upload
    template <class Range, class Token = default_token>
    auto async_upload(Range&& data, Token&& token = {}) const
    {
        return device_.async_upload(static_cast<Range&&>(data), options_, static_cast<Token&&>(token));
    }

    /// \copydoc device::async_download
    template <class Source, class Token = default_token>
    auto async_download(const Source& source, Token&& token = {}) const
    {
        return device_.async_download(source, options_, static_cast<Token&&>(token));
    }

    /// \copydoc device::async_write
    template <class Target, class Range, class Token = default_token>
    auto async_write(const Target& target, Range&& data, Token&& token = {}) const
    {
        return device_.async_write(target, static_cast<Range&&>(data), options_, static_cast<Token&&>(token));
    }

    /// \copydoc device::async_read
    template <class Source, class Range, class Token = default_token>
    auto async_read(const Source& source, Range&& data, Token&& token = {}) const
    {
        return device_.async_read(source, static_cast<Range&&>(data), options_, static_cast<Token&&>(token));
    }

private:
    device device_;
    exec_options options_;
};

inline device_with device::with(const exec_options& options) const noexcept
{
    return {*this, options};
}

} // namespace coaccel

#endif
