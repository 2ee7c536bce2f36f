#ifndef COACCEL_TEST_GPU_GPU_HPP
#define COACCEL_TEST_GPU_GPU_HPP

#include "support/device_fixture.hpp"

#include <coaccel/coaccel.hpp>

#include <string>

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

/// A GPU with its own io_context.
struct gpu_fixture : device_fixture {
    explicit gpu_fixture(const coaccel::device_options& o = gpu_options()) : device_fixture(o) {}
};

} // namespace test

#endif
