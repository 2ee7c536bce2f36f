#include "worker/parent/sent_kernels.hpp"

#include "jit/image.hpp"
#include "worker/child/received_kernels.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_worker_sent_kernels {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

/// An image that is in no registry.
struct some_image : jit::image {
    some_image(std::uint64_t number, std::size_t bytes, std::string mangled = "s")
    {
        id = number;
        name = "k";
        symbol = std::move(mangled);
        code.assign(bytes, 'x');
    }
    // The id was never registered.
    ~some_image() { id = 0; }
};

// The name and symbol count too.
constexpr std::uint64_t texts = 2;

void check_refused(const error_code& ec, const std::string& figure, const std::string& limit)
{
    const auto message = ec.message();
    CAPTURE(message);
    CHECK(ec == errc::invalid_argument);
    CHECK(message.find("the kernel k") != std::string::npos);
    CHECK(message.find(figure) != std::string::npos);
    CHECK(message.find(limit) != std::string::npos);
}

} // namespace

TEST_SUITE_BEGIN("sent_kernels");

TEST_CASE("a kernel that is too large is refused with its size and the limit")
{
    const sent_kernels l({.bytes_each = 1000, .symbol = 30});
    CHECK_FALSE(l.check(some_image(1, 1000)));
    check_refused(l.check(some_image(1, 1001)), "1001", "1000");
    CHECK_FALSE(l.check(some_image(1, 10, std::string(30, 's'))));
    check_refused(l.check(some_image(1, 10, std::string(31, 's'))), "31", "30");
}

TEST_CASE("removed kernels make room")
{
    sent_kernels l({.images = 3, .bytes = 100 + 2 * texts});
    l.add(some_image(1, 60));
    l.add(some_image(2, 30));
    CHECK(l.has(1));
    CHECK(l.size() == 2);
    CHECK(l.has_room_for(some_image(3, 10 - texts)));
    CHECK_FALSE(l.has_room_for(some_image(3, 11 - texts)));
    check_refused(l.full(some_image(3, 11 - texts)), "11", std::to_string(100 + 2 * texts));
    l.remove_if([](std::uint64_t id) { return id == 1; });
    CHECK_FALSE(l.has(1));
    CHECK(l.has_room_for(some_image(3, 70)));
    CHECK_FALSE(l.has_room_for(some_image(3, 71)));
    l.add(some_image(3, 1));
    l.add(some_image(4, 1));
    CHECK_FALSE(l.has_room_for(some_image(5, 0)));
    l.remove_if([](std::uint64_t) { return true; });
    CHECK(l.size() == 0);
    CHECK(l.has_room_for(some_image(5, 100)));
}

TEST_CASE("a kernel that is added twice counts once")
{
    sent_kernels l({.bytes = 10 + texts});
    l.add(some_image(1, 5));
    l.add(some_image(1, 5));
    l.remove_if([](std::uint64_t) { return true; });
    CHECK(l.has_room_for(some_image(2, 10)));
    CHECK_FALSE(l.has_room_for(some_image(2, 11)));
}

TEST_CASE("destroyed kernels are looked for without room, or when the kernels have more than doubled")
{
    sent_kernels l({.bytes = 10'000});
    CHECK_FALSE(l.should_scan_for(some_image(1, 10)));
    CHECK(l.should_scan_for(some_image(1, 10'001)));
    std::uint64_t id = 0;
    const auto add_until = [&](std::size_t size) {
        while (l.size() < size)
            l.add(some_image(++id, 1));
    };
    add_until(64);
    CHECK_FALSE(l.should_scan_for(some_image(1000, 1)));
    add_until(65);
    CHECK(l.should_scan_for(some_image(1000, 1)));
    l.remove_if([](std::uint64_t old) { return old % 2 == 0; });
    REQUIRE(l.size() == 33);
    add_until(2 * 33 + 64);
    CHECK_FALSE(l.should_scan_for(some_image(1000, 1)));
    add_until(2 * 33 + 65);
    CHECK(l.should_scan_for(some_image(1000, 1)));
}

TEST_CASE("the worker accepts exactly the kernels for which there is room")
{
    const image_limits limits{.images = 5, .bytes_each = 40, .bytes = 100};
    sent_kernels l(limits);
    received_kernels s(limits);
    std::uint64_t id = 0;
    int taken = 0, refused = 0;
    for (int round = 0; round < 50; ++round) {
        const some_image i(++id, static_cast<std::size_t>(round * 7 % 45));
        const bool has_room = !l.check(i) && l.has_room_for(i);
        image_frame f;
        f.id = i.id;
        f.name = i.name;
        f.symbol = i.symbol;
        f.total = i.code.size();
        f.part = std::as_bytes(std::span(i.code));
        CHECK(s.add(f) == has_room);
        ++(has_room ? taken : refused);
        if (has_room)
            l.add(i);
        if (round % 6 == 5)
            l.remove_if([&](std::uint64_t old) { return old % 2 == 0 && s.remove(old); });
        if (round % 12 == 11)
            l.remove_if([&](std::uint64_t old) { return s.remove(old); });
    }
    CHECK(taken > 10);
    CHECK(refused > 10);
}

TEST_SUITE_END();

} // namespace test_worker_sent_kernels
