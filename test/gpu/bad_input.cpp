#include "gpu.hpp"

namespace {

using namespace coaccel;
using test::await;

TEST_SUITE_BEGIN("gpu bad input");

TEST_CASE("an ordinal that does not exist is named in the error")
{
    asio::io_context io{1};
    auto o = test::gpu_options();
    o.ordinal = 4711;
    auto made = await(io, device::async_create(io.get_executor(), o));
    REQUIRE_FALSE(made);
    CHECK(made.error() == errc::no_device);
    CHECK(made.error().message().find("4711") != std::string::npos);
}

TEST_CASE("the best device is the GPU")
{
    asio::io_context io{1};
    auto o = test::gpu_options();
    o.kind = device_kind::best;
    auto gpu = test::make_device(io, o);
    CHECK(await(io, gpu.async_stats()).value().backend == "cuda");
}

TEST_CASE("invalid refs are refused by the GPU device")
{
    test::gpu_fixture f;
    auto b = f.alloc<float>(16);
    CHECK(f.exec(memory::copy<float>{.src = b.subspan(0, 8), .dst = b.subspan(4, 8)}).error() == errc::overlap);
    CHECK(f.exec(memory::fill<float>{.dst = b.subspan(8, 9)}).error() == errc::out_of_bounds);
    const auto r = b.ref();
    b.reset();
    CHECK(f.exec(memory::fill<float>{.dst = r}).error() == errc::released_ref);
}

TEST_SUITE_END();

} // namespace
