#include "isolated.hpp"
#include "jit/image.hpp"

#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

namespace test_integration_kernels {

// Kernels of this process, which are sent to a worker when they are used.
namespace {

using namespace coaccel;

void does_nothing(const jit::launch_shape&) {}

jit::kernel make_kernel(std::string code)
{
    auto made = jit::make_kernel(jit::compile_options("f").host(does_nothing), {"f", std::move(code), {}});
    REQUIRE(made);
    return std::move(made).value();
}

TEST_SUITE_BEGIN("isolated devices");

TEST_CASE("hundreds of kernels can be created and released, with and without device code")
{
    test::isolated_fixture f;
    for (const std::string code : {"", "code"}) {
        CAPTURE(code);
        std::vector<jit::kernel> kept;
        for (int i = 0; i < 300; ++i) {
            auto made = make_kernel(code);
            auto told = f.exec(jit::occupancy(made));
            REQUIRE_MESSAGE(told, (told ? std::string() : told.error().message()));
            CHECK(told.value().block_size == 1);
            if (i % 3 == 0)
                kept.push_back(std::move(made));
        }
        for (const auto& k : kept)
            CHECK(f.exec(jit::occupancy(k)));
    }
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("a kernel that is too large for a worker is refused, and the worker continues")
{
    test::isolated_fixture f;
    const int process = f.process();
    {
        const auto huge = make_kernel(std::string((std::size_t(256) << 20) + 1, 'x'));
        const auto told = f.exec(jit::occupancy(huge));
        REQUIRE_FALSE(told);
        CHECK(told.error() == errc::invalid_argument);
        CHECK_MESSAGE(told.error().message().find("268435456") != std::string::npos, told.error().message());
    }
    CHECK(f.exec(jit::occupancy(make_kernel("code"))));
    CHECK(f.process() == process);
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("a worker on the CPU refuses a kernel's host function immediately")
{
    test::isolated_fixture f;
    for (const std::string code : {"", "code"}) {
        CAPTURE(code);
        const auto ec = f.run(jit::launch(make_kernel(code), {}));
        CHECK(ec == errc::not_isolatable);
        CHECK(ec.message() ==
              "jit.launch: the host function of the kernel f is code of this process, and the device is in a worker "
              "process; put it into a plug-in and use plugin::call, or use isolation::in_process");
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_integration_kernels
