#include "worker/child/received_plans.hpp"

#include "plan_samples.hpp"

#include <doctest/doctest.h>

namespace test_worker_received_plans {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

struct fixture {
    explicit fixture(const plan_limits& limits = {}) : plans(limits) {}

    bool add(std::uint64_t number, std::size_t from, std::size_t to)
    {
        const auto part = std::span(bytes).subspan(from, to - from);
        return plans.add({.number = number, .total = bytes.size(), .offset = from, .part = part}, here);
    }

    bool add(std::uint64_t number) { return add(number, 0, bytes.size()); }

    test::no_kernels kernels;
    plan_environment here = test::sample_environment(kernels);
    std::vector<std::byte> bytes = test::encoded(*test::sample_plan());
    received_plans plans;
};

} // namespace

TEST_SUITE_BEGIN("received_plans");

TEST_CASE("a plan arrives in parts and is found when it is complete")
{
    fixture f;
    CHECK(f.add(3, 0, 10));
    CHECK(f.plans.find(3) == nullptr);
    CHECK(f.add(3, 10, 50));
    CHECK(f.add(3, 50, f.bytes.size()));
    const auto* found = f.plans.find(3);
    REQUIRE(found);
    REQUIRE(found->plan);
    CHECK_FALSE(found->refusal());
    CHECK(found->plan->name == "sample");
    CHECK(f.plans.find(4) == nullptr);
    // It is complete.
    CHECK_FALSE(f.add(3, 0, 10));
    CHECK_FALSE(f.add(3));
}

TEST_CASE("parts that do not follow each other are refused")
{
    fixture f;
    CHECK_FALSE(f.add(1, 10, 20));
    CHECK(f.add(2, 0, 10));
    CHECK_FALSE(f.add(2, 0, 10));
    CHECK_FALSE(f.add(2, 11, 20));
    CHECK_FALSE(f.add(2, 10, 10));
    f.bytes.push_back(std::byte{0});
    CHECK_FALSE(f.add(2, 10, 20));
}

TEST_CASE("bytes that are not a plan are refused")
{
    fixture f;
    f.bytes.back() ^= std::byte{0xff};
    f.bytes[0] = std::byte{9};
    CHECK_FALSE(f.add(1));
}

TEST_CASE("a plan that cannot run here is kept with the reason")
{
    fixture f;
    f.here.describe = [](std::uint64_t) { return nullptr; };
    REQUIRE(f.add(1));
    const auto* found = f.plans.find(1);
    REQUIRE(found);
    CHECK(found->plan == nullptr);
    CHECK(found->refusal() == errc::unsupported_op);
    CHECK(found->refusal().message() == "memory.copy<f32>: the sample backend does not implement it");
}

TEST_CASE("a removed plan makes room, and lives as long as it is used")
{
    const auto size = test::encoded(*test::sample_plan()).size();
    fixture f({.bytes = 2 * size});
    CHECK(f.add(1));
    CHECK(f.add(2, 0, 10));
    CHECK_FALSE(f.add(3));
    const auto used = f.plans.find(1)->plan;
    CHECK(f.plans.remove(1));
    CHECK_FALSE(f.plans.remove(1));
    CHECK(f.plans.find(1) == nullptr);
    CHECK(f.add(3));
    CHECK(used->ops.size() == 7);
    CHECK(f.plans.remove(2));
    CHECK(f.add(4));
}

TEST_CASE("the limits are kept")
{
    fixture few({.plans = 1});
    CHECK(few.add(1));
    CHECK_FALSE(few.add(2));
    fixture small({.bytes_each = 10});
    CHECK_FALSE(small.add(1, 0, 5));
}

TEST_SUITE_END();

} // namespace test_worker_received_plans
