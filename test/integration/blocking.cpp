#include "isolated.hpp"

#include <doctest/doctest.h>

namespace test_integration_blocking {

using namespace coaccel;
using namespace std::chrono_literals;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

TEST_SUITE_BEGIN("isolated blocking");

TEST_CASE("a worker that makes its descriptors blocking does not stop the executor of its parent")
{
    for (const auto spin : {0us, 50us}) {
        CAPTURE(spin.count());
        auto o = isolated_options();
        o.worker.program = COACCEL_TEST_BLOCKING_WORKER;
        o.worker.spin = spin;
        isolated_fixture f(o);
        for (int i = 0; i < 20; ++i)
            REQUIRE(f.download(f.upload(numbers(100)).ref()) == numbers(100));
        const auto g = f.gpu.status().generation;
        f.send(SIGKILL);
        f.wait_for_generation(g + 1);
        CHECK(f.download(f.upload(numbers(100)).ref()) == numbers(100));
    }
}

TEST_SUITE_END();

} // namespace test_integration_blocking
