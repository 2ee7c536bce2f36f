#include "context/buffers/adopted_buffers.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

namespace test_context_adopted_buffers {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

struct fixture {
    fixture()
    {
        (void)order.add_lane();
        (void)order.add_lane();
    }

    any_ref adopt(std::shared_ptr<void> owner)
    {
        buffers.expect();
        return table.adopt(memory, 4, dtype::f32, std::move(owner));
    }

    void release(const any_ref& ref)
    {
        auto retired = table.retire(ref);
        REQUIRE(retired);
        REQUIRE(retired->owner.has_value());
        buffers.add(std::move(*retired));
    }

    /// The owner of a buffer that is no longer used; null also if there is none.
    std::shared_ptr<void> next()
    {
        std::shared_ptr<void> owner;
        found = buffers.next_unused(order, owner);
        return owner;
    }

    lane_clock order;
    buffer_table table{{.device = 7, .generation = 3}};
    adopted_buffers buffers;
    bool found = false;
    char memory[16]{};
};

} // namespace

TEST_SUITE_BEGIN("adopted_buffers");

TEST_CASE_FIXTURE(fixture, "adopted memory is found by its ref, and has an owner when it is released")
{
    const auto owner = std::make_shared<int>(1);
    const auto ref = adopt(owner);
    CHECK(ref.size == 4);
    REQUIRE(table.find(ref, dtype::f32));
    CHECK(table.find(ref, dtype::f32).value()->memory == memory);
    CHECK(owner.use_count() == 2);
    const auto retired = table.retire(ref);
    REQUIRE(retired);
    CHECK(retired->owner == owner);
    CHECK(table.find(ref, dtype::f32).error() == errc::released_ref);
    // Its slot is used for memory without an owner.
    const auto own = table.insert(memory, 4, dtype::f32);
    CHECK(own.slot == ref.slot);
    CHECK_FALSE(table.retire(own)->owner.has_value());
}

TEST_CASE_FIXTURE(fixture, "a buffer that no op uses gives its owner back at once")
{
    auto owner = std::make_shared<int>(1);
    CHECK(buffers.empty());
    release(adopt(owner));
    CHECK_FALSE(buffers.empty());
    CHECK(next() == owner);
    CHECK(buffers.empty());
    CHECK(owner.use_count() == 1);
    CHECK(next() == nullptr);
    CHECK_FALSE(found);
}

TEST_CASE_FIXTURE(fixture, "an owner stays until the ops on every lane have passed")
{
    const auto busy = std::make_shared<int>(1);
    const auto idle = std::make_shared<int>(2);
    const auto used = adopt(busy);
    table.log(used.slot).note(access::read, all_elements, {0, 5}, order);
    table.log(used.slot).note(access::read, all_elements, {1, 2}, order);
    const auto unused = adopt(idle);
    release(used);
    release(unused);
    CHECK(next() == idle);
    (void)next();
    CHECK_FALSE(found);
    order.pass({0, 5});
    (void)next();
    CHECK_FALSE(found);
    order.pass({1, 2});
    CHECK(next() == busy);
}

TEST_CASE_FIXTURE(fixture, "memory without an owner is no longer kept either")
{
    release(adopt(nullptr));
    CHECK(next() == nullptr);
    CHECK(found);
    CHECK(buffers.empty());
}

TEST_CASE_FIXTURE(fixture, "all owners can be taken, those of live and of released buffers")
{
    CHECK(buffers.take_owners(table) == nullptr);
    std::weak_ptr<void> seen[20];
    for (int i = 0; i < 20; ++i) {
        const auto owner = std::make_shared<int>(i);
        seen[i] = owner;
        const auto ref = adopt(owner);
        table.log(ref.slot).note(access::write, all_elements, {0, 1}, order);
        if (i % 2 == 0)
            release(ref);
    }
    auto all = buffers.take_owners(table);
    REQUIRE(all);
    CHECK(all->size() == 20);
    CHECK(buffers.empty());
    for (const auto& s : seen)
        CHECK_FALSE(s.expired());
    all.reset();
    for (const auto& s : seen)
        CHECK(s.expired());
    CHECK(buffers.take_owners(table) == nullptr);
}

TEST_SUITE_END();

} // namespace test_context_adopted_buffers
