#ifndef COACCEL_TEST_SUPPORT_LONE_DEVICE_HPP
#define COACCEL_TEST_SUPPORT_LONE_DEVICE_HPP

#include "support/devices.hpp"

#include <vector>

namespace test {

/// A device with its own io_context; each call runs the context until the operation completes.
struct lone_device {
    explicit lone_device(const coaccel::device_options& o) : gpu(make_device(io, o)) {}
    lone_device(const lone_device&) = delete;
    lone_device& operator=(const lone_device&) = delete;

    ~lone_device()
    {
        gpu = {};
        run_out(io);
    }

    template <class T>
    coaccel::buffer<T> upload(const std::vector<T>& data)
    {
        auto made = await(io, gpu.async_upload(data));
        REQUIRE(made);
        return std::move(made).value();
    }

    template <class T>
    std::vector<T> download(const coaccel::ref<T>& source)
    {
        auto got = await(io, gpu.async_download(source));
        REQUIRE(got);
        return std::move(got).value();
    }

    template <class T>
    coaccel::buffer<T> alloc(std::size_t count)
    {
        auto made = await(io, gpu.async_alloc<T>(count));
        REQUIRE(made);
        return std::move(made).value();
    }

    template <class Op>
    auto exec(const Op& op)
    {
        return await(io, gpu.async_exec(op));
    }

    asio::io_context io{1};
    coaccel::device gpu;
};

} // namespace test

#endif
