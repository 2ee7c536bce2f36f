#include "context/faults/leak_registry.hpp"

#include <doctest/doctest.h>

namespace test_context_leak_registry {

namespace {

struct mortal {
    explicit mortal(int& c) noexcept : count(c) { ++count; }
    mortal(const mortal&) = delete;
    mortal& operator=(const mortal&) = delete;
    ~mortal() { --count; }

    int& count;
};

} // namespace

TEST_SUITE_BEGIN("leak_registry");

TEST_CASE("registered objects are never destroyed")
{
    // The objects outlive the test.
    static int count = 0;
    for (int i = 0; i < 3; ++i)
        coaccel::detail::leak_registry<mortal>::add(std::make_unique<mortal>(count));
    CHECK(count == 3);
}

TEST_SUITE_END();

} // namespace test_context_leak_registry
