#include "worker/image_ledger.hpp"

#include "jit/image.hpp"
#include "worker/image_shelf.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace coaccel;
using namespace coaccel::worker;

/// One that is in no registry.
struct some_image : jit::image {
    some_image(std::uint64_t number, std::size_t bytes, std::string mangled = "s")
    {
        id = number;
        name = "k";
        symbol = std::move(mangled);
        code.assign(bytes, 'x');
    }
    // Its number was never given.
    ~some_image() { id = 0; }
};

// Name and symbol count too.
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

TEST_SUITE_BEGIN("image_ledger");

TEST_CASE("one that is too large is refused, with its size and the limit")
{
    const image_ledger l({.bytes_each = 1000, .symbol = 30});
    CHECK_FALSE(l.check(some_image(1, 1000)));
    check_refused(l.check(some_image(1, 1001)), "1001", "1000");
    CHECK_FALSE(l.check(some_image(1, 10, std::string(30, 's'))));
    check_refused(l.check(some_image(1, 10, std::string(31, 's'))), "31", "30");
}

TEST_CASE("those that are gone make room")
{
    image_ledger l({.images = 3, .bytes = 100 + 2 * texts});
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

TEST_CASE("one that is added twice counts once")
{
    image_ledger l({.bytes = 10 + texts});
    l.add(some_image(1, 5));
    l.add(some_image(1, 5));
    l.remove_if([](std::uint64_t) { return true; });
    CHECK(l.has_room_for(some_image(2, 10)));
    CHECK_FALSE(l.has_room_for(some_image(2, 11)));
}

TEST_CASE("what the ledger has room for the worker takes")
{
    const image_limits limits{.images = 5, .bytes_each = 40, .bytes = 100};
    image_ledger l(limits);
    image_shelf s(limits);
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
