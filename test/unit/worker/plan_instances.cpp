#include "worker/child/plan_instances.hpp"

#include "buffer_ref.hpp"
#include "plan_samples.hpp"

#include <doctest/doctest.h>

namespace test_worker_plan_instances {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::plan_unload_op;

struct fixture {
    /// Refs that match the plan, beginning with this slot.
    std::vector<any_ref> refs(std::uint32_t slot) const
    {
        std::vector<any_ref> made{test::buffer_ref(7, slot, plan->instance_bytes, dtype::u8)};
        for (const auto* kind : {&plan->constants, &plan->states, &plan->states})
            for (const auto i : *kind)
                made.push_back(test::buffer_ref(7, ++slot, plan->slots[i].bytes(), dtype::u8));
        return made;
    }

    bool add(std::uint64_t instance, std::vector<any_ref> with)
    {
        return all.add(instance, {.plan = plan, .chain = 2, .refs = std::move(with)});
    }

    std::shared_ptr<const detail::plan_data> plan = test::sample_plan();
    plan_instances all;
};

} // namespace

TEST_SUITE_BEGIN("plan_instances");

TEST_CASE("an instance is found until it is unloaded")
{
    fixture f;
    CHECK(f.all.find(1) == nullptr);
    REQUIRE(f.add(1, f.refs(0)));
    REQUIRE(f.all.find(1));
    CHECK(f.all.find(1)->memory().slot == 0);
    CHECK_FALSE(f.add(1, f.refs(10)));
    CHECK_FALSE(f.all.begin_unload({.instance = 1, .chain = 2}));
    CHECK(f.all.find(1) == nullptr);
    CHECK(f.all.begin_unload({.instance = 1, .chain = 2}) == errc::invalid_argument);
    CHECK(f.all.remove(1).empty());
    CHECK(f.all.remove(1).empty());
    CHECK(f.add(1, f.refs(0)));
}

TEST_CASE("an instance that could not be unloaded is still there")
{
    fixture f;
    REQUIRE(f.add(1, f.refs(0)));
    REQUIRE_FALSE(f.all.begin_unload({.instance = 1, .chain = 2}));
    f.all.unload_failed(1);
    CHECK(f.all.find(1));
    CHECK_FALSE(f.all.begin_unload({.instance = 1, .chain = 2}));
}

TEST_CASE("an unload names an instance and its chain")
{
    fixture f;
    const auto unknown = f.all.begin_unload({.instance = 9, .chain = 2});
    CHECK(unknown == errc::invalid_argument);
    CHECK(unknown.message() == "plan.unload: instance 9 is not loaded");
    REQUIRE(f.add(1, f.refs(0)));
    CHECK(f.all.begin_unload({.instance = 1, .chain = 3}) == errc::worker_corrupted);
}

TEST_CASE("buffers that are too few, too many or too small are refused")
{
    fixture f;
    auto refs = f.refs(0);
    refs.pop_back();
    CHECK_FALSE(f.add(1, refs));
    refs = f.refs(0);
    refs.push_back(refs.back());
    CHECK_FALSE(f.add(1, refs));
    CHECK_FALSE(f.add(1, {}));
    for (std::size_t i = 0; i < f.refs(0).size(); ++i) {
        CAPTURE(i);
        refs = f.refs(0);
        --refs[i].size;
        CHECK_FALSE(f.add(1, refs));
    }
    CHECK(f.all.size() == 0);
    CHECK_FALSE(f.all.delay_release(f.refs(0)[0]));
}

TEST_CASE("the release of a buffer waits for every instance that uses it")
{
    fixture f;
    auto first = f.refs(0), second = f.refs(20);
    second[1] = first[1];
    REQUIRE(f.add(1, first));
    REQUIRE(f.add(2, second));
    CHECK_FALSE(f.all.delay_release(test::buffer_ref(7, 50, 1, dtype::u8)));
    auto next_use = first[1];
    ++next_use.version;
    CHECK_FALSE(f.all.delay_release(next_use));
    CHECK(f.all.delay_release(first[1]));
    CHECK(f.all.delay_release(first[0]));
    CHECK(f.all.delay_release(first[0]));
    const auto free = f.all.remove(1);
    REQUIRE(free.size() == 1);
    CHECK(free[0] == first[0]);
    const auto shared = f.all.remove(2);
    REQUIRE(shared.size() == 1);
    CHECK(shared[0] == first[1]);
    CHECK_FALSE(f.all.delay_release(first[1]));
}

TEST_SUITE_END();

} // namespace test_worker_plan_instances
