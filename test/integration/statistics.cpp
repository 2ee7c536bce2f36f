#include "isolated.hpp"

#include <doctest/doctest.h>

namespace test_integration_statistics {

using namespace coaccel;
using test::await;
using test::isolated_fixture;
using test::numbers;

TEST_SUITE_BEGIN("isolated statistics");

TEST_CASE("used memory is reported as soon as a buffer exists, and the high-water mark stays")
{
    isolated_fixture f;
    const auto memory = [&] { return await(f.io, f.gpu.async_stats()).value().memory; };
    CHECK(memory().used == 0);
    std::vector<buffer<float>> held;
    for (std::uint64_t n = 1; n <= 50; ++n) {
        held.push_back(f.upload(numbers(1024)));
        REQUIRE(memory().used == n * 4096);
        REQUIRE(memory().high_water == n * 4096);
    }
    held.clear();
    test::run_until(f.io, [&] { return memory().used == 0; });
    CHECK(memory().high_water == 50 * 4096);
}

TEST_CASE("bytes copied to and from a worker are counted")
{
    isolated_fixture f;
    const auto before = await(f.io, f.gpu.async_stats()).value();
    const std::vector<float> data = numbers(1 << 20);
    const auto x = f.upload(data);
    CHECK(f.download(x.ref()) == data);
    const auto after = await(f.io, f.gpu.async_stats()).value();
    CHECK(after.bytes_to_device - before.bytes_to_device == 4 << 20);
    CHECK(after.bytes_to_host - before.bytes_to_host == 4 << 20);
    CHECK(after.completed - before.completed == 2);
}

TEST_SUITE_END();

} // namespace test_integration_statistics
