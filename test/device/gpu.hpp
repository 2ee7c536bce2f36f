#ifndef COACCEL_TEST_DEVICE_GPU_HPP
#define COACCEL_TEST_DEVICE_GPU_HPP

#include "support/devices.hpp"

#include <coaccel/coaccel.hpp>

#include <string>
#include <vector>

namespace test {

inline coaccel::device_options gpu_options()
{
    coaccel::device_options o;
    o.kind = coaccel::device_kind::cuda;
    return o;
}

inline coaccel::jit::kernel compile(asio::io_context& io, const coaccel::device& gpu, const char* source,
                                    const char* name)
{
    auto made = await(io, gpu.async_compile(source, coaccel::jit::compile_options(name)));
    REQUIRE_MESSAGE(made, (made ? std::string() : made.error().message()));
    return std::move(made).value();
}

/// A GPU device on an io_context of its own.
struct gpu_fixture {
    explicit gpu_fixture(const coaccel::device_options& o = gpu_options()) : gpu(make_device(io, o)) {}

    ~gpu_fixture()
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
