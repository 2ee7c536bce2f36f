#include "context/graveyard.hpp"

#include <doctest/doctest.h>

namespace {

struct mortal {
    explicit mortal(int& c) noexcept : count(c) { ++count; }
    mortal(const mortal&) = delete;
    mortal& operator=(const mortal&) = delete;
    ~mortal() { --count; }

    int& count;
};

} // namespace

TEST_SUITE_BEGIN("graveyard");

TEST_CASE("what is buried stays, however many there are")
{
    // They outlive the test.
    static int count = 0;
    for (int i = 0; i < 3; ++i)
        coaccel::detail::graveyard<mortal>::bury(std::make_unique<mortal>(count));
    CHECK(count == 3);
}

TEST_SUITE_END();
