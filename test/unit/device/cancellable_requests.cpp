#include "device/cancellable_requests.hpp"

#include <doctest/doctest.h>

namespace test_device_cancellable_requests {

namespace {

using namespace coaccel::detail;

struct plain final : request {
    explicit plain(std::uint64_t id) noexcept { cancel_id = id; }
    void post() override {}
    void destroy() noexcept override {}
};

} // namespace

TEST_SUITE_BEGIN("cancellable_requests");

TEST_CASE("a request is found by its ID until it is removed")
{
    plain a(7), b(3), c(5);
    cancellable_requests all;
    for (plain* r : {&a, &b, &c})
        all.add(*r);
    CHECK(all.find(7) == &a);
    CHECK(all.find(3) == &b);
    CHECK(all.find(5) == &c);
    CHECK_FALSE(all.find(4));
    all.remove(b);
    CHECK_FALSE(all.find(3));
    CHECK(all.find(5) == &c);
    all.remove(b);
    CHECK(all.find(7) == &a);
}

TEST_CASE("requests without an ID are not kept")
{
    plain a(0), b(0);
    cancellable_requests all;
    all.add(a);
    all.add(b);
    CHECK_FALSE(all.find(0));
    all.remove(a);
}

TEST_CASE("a removed request can be added again")
{
    plain a(1);
    cancellable_requests all;
    all.add(a);
    all.remove(a);
    all.add(a);
    CHECK(all.find(1) == &a);
}

TEST_CASE("requests may outlive the index")
{
    plain a(1), b(2);
    {
        cancellable_requests all;
        all.add(a);
        all.clear();
        CHECK_FALSE(all.find(1));
        CHECK_FALSE(a.by_id.is_linked());
        all.add(b);
    }
    CHECK_FALSE(b.by_id.is_linked());
}

TEST_SUITE_END();

} // namespace test_device_cancellable_requests
