#include "isolated.hpp"
#include "unit/cuda/chosen_library.hpp"

#include <doctest/doctest.h>

namespace test_integration_libraries {

using namespace coaccel;

TEST_SUITE_BEGIN("isolated libraries");

TEST_CASE("a worker opens only the library chosen by the program")
{
    const chosen_library chosen(cuda::vendor_library::driver, "/the/chosen/libcuda.so");
    asio::io_context io{1};
    auto o = test::isolated_options();
    o.kind = device_kind::cuda;
    o.restart.max_restarts = 0;
    const auto ec = test::await(io, device::async_create(io.get_executor(), o)).error();
    CHECK(ec == errc::library_missing);
    CHECK_MESSAGE(ec.message().find("tried /the/chosen/libcuda.so (") != std::string::npos, ec.message());
}

TEST_SUITE_END();

} // namespace test_integration_libraries
