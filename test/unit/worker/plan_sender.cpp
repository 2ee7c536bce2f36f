#include "worker/parent/plan_sender.hpp"

#include "outgoing_ring.hpp"
#include "plan_samples.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace test_worker_plan_sender {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

struct fixture final : test::outgoing_ring {
    explicit fixture(const plan_limits& limits = {}) : sender(out, limits) {}

    error_code add(std::uint64_t instance, const detail::plan_data& p)
    {
        return sender.add({.instance = instance, .chain = 1, .plan = &p});
    }

    struct received {
        std::vector<std::uint64_t> plans;
        std::vector<std::byte> bytes;
        std::size_t parts = 0;
        std::vector<std::uint64_t> forgotten;
    };

    /// What the worker has received since the last call.
    received take()
    {
        received all;
        for (out.flush(); read(); out.flush()) {
            decoder in(record);
            message_type what{};
            REQUIRE(in.get(what, message_type::plan, message_type::forget_plan));
            if (what == message_type::forget_plan) {
                std::uint64_t number = 0;
                REQUIRE((in.get(number) && in.at_end()));
                all.forgotten.push_back(number);
                continue;
            }
            plan_frame f;
            REQUIRE(get_plan(in, f));
            if (f.offset == 0) {
                all.plans.push_back(f.number);
                all.bytes.clear();
            }
            CHECK(f.offset == all.bytes.size());
            ++all.parts;
            all.bytes.insert(all.bytes.end(), f.part.begin(), f.part.end());
            CHECK(all.bytes.size() <= f.total);
        }
        return all;
    }

    plan_sender sender;
};

} // namespace

TEST_SUITE_BEGIN("plan_sender");

TEST_CASE("a plan is sent once for all its instances, and forgotten with the last")
{
    fixture f;
    const auto a = test::sample_plan(4, "a"), b = test::sample_plan(4, "b");
    CHECK_FALSE(f.add(1, *a));
    CHECK_FALSE(f.add(2, *a));
    CHECK_FALSE(f.add(3, *b));
    auto got = f.take();
    CHECK(got.plans == std::vector<std::uint64_t>{1, 2});
    CHECK(got.bytes == test::encoded(*b));
    CHECK(f.sender.number_of(*a) == 1);
    CHECK(f.sender.number_of(*b) == 2);

    f.sender.remove(1);
    CHECK(f.take().forgotten.empty());
    CHECK(f.sender.has(*a));
    f.sender.remove(1);
    f.sender.remove(99);
    CHECK(f.take().forgotten.empty());
    f.sender.remove(2);
    CHECK(f.take().forgotten == std::vector<std::uint64_t>{1});
    CHECK_FALSE(f.sender.has(*a));

    // Numbers are not used twice.
    CHECK_FALSE(f.add(4, *a));
    CHECK(f.take().plans == std::vector<std::uint64_t>{3});
}

TEST_CASE("an instance that exists is refused")
{
    fixture f;
    const auto a = test::sample_plan();
    CHECK_FALSE(f.add(1, *a));
    const auto ec = f.add(1, *a);
    CHECK(ec == errc::invalid_argument);
    CHECK(ec.message() == "plan.load: instance 1 is already loaded");
    f.sender.remove(1);
    CHECK_FALSE(f.sender.has(*a));
}

TEST_CASE("a large plan is sent in parts, more than the ring holds")
{
    fixture f;
    plan_builder b("large");
    const auto y = b.output<float>(8);
    for (int i = 0; i < 10'000; ++i)
        b.add(memory::fill<float>{y, 1});
    const auto plan = detail::plan_access::data(b.finish().value());
    const auto bytes = test::encoded(*plan);
    CHECK(bytes.size() > ring_bytes);
    CHECK_FALSE(f.add(1, *plan));
    const auto got = f.take();
    CHECK(got.plans.size() == 1);
    CHECK(got.parts > 4);
    CHECK(got.bytes == bytes);
}

TEST_CASE("a plan beyond the limits is refused, and nothing is sent")
{
    const auto a = test::sample_plan();
    const auto size = test::encoded(*a).size();
    fixture small({.bytes_each = size - 1});
    CHECK(small.add(1, *a) == errc::invalid_argument);
    CHECK(small.take().plans.empty());
    CHECK_FALSE(small.sender.has(*a));

    const auto b = test::sample_plan();
    fixture two({.bytes = 2 * size - 1});
    CHECK_FALSE(two.add(1, *a));
    CHECK(two.add(2, *b) == errc::invalid_argument);
    two.sender.remove(1);
    CHECK_FALSE(two.add(2, *b));
    fixture one({.plans = 1});
    CHECK_FALSE(one.add(1, *a));
    CHECK(one.add(2, *b) == errc::invalid_argument);

    detail::plan_data many;
    many.slots.resize(65536);
    CHECK(one.add(3, many) == errc::invalid_argument);
}

TEST_SUITE_END();

} // namespace test_worker_plan_sender
