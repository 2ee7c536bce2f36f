#include "isolated.hpp"
#include "jit/image.hpp"

#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/jit_occupancy.hpp>

// Kernels of this process, which a worker hears of when they are used.
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

TEST_CASE("kernels come and go in great number, with code and without")
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

TEST_SUITE_END();

} // namespace
