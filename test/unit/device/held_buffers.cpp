#include "device/held_buffers.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace test_device_held_buffers {

namespace {

using namespace coaccel;
using detail::held_buffers;

any_ref buffer(std::uint32_t slot, std::uint32_t version = 1)
{
    return {.device = 1, .generation = 1, .slot = slot, .version = version, .size = 4, .type = dtype::f32};
}

TEST_SUITE_BEGIN("held_buffers");

TEST_CASE("a buffer that no graph holds is released at once")
{
    held_buffers held;
    held.add(std::vector{buffer(1)});
    CHECK_FALSE(held.delay_release(buffer(2)));
    // Another buffer in the same slot.
    CHECK_FALSE(held.delay_release(buffer(1, 2)));
    CHECK(held.size() == 1);
}

TEST_CASE("a released buffer is returned with the last graph that holds it")
{
    held_buffers held;
    const std::vector first{buffer(1), buffer(2)};
    const std::vector second{buffer(2), buffer(3)};
    held.add(first);
    held.add(second);
    CHECK(held.delay_release(buffer(2)));
    CHECK(held.remove(first).empty());
    CHECK(held.remove(second) == std::vector{buffer(2)});
    CHECK(held.size() == 0);
}

TEST_CASE("a buffer that was not released stays with its owner")
{
    held_buffers held;
    const std::vector all{buffer(1)};
    held.add(all);
    CHECK(held.remove(all).empty());
    CHECK_FALSE(held.delay_release(buffer(1)));
}

TEST_CASE("after the loss of the context nothing is held")
{
    held_buffers held;
    const std::vector all{buffer(1)};
    held.add(all);
    CHECK(held.delay_release(buffer(1)));
    held.clear();
    CHECK(held.remove(all).empty());
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_held_buffers
