#include "worker/parent/remote_buffers.hpp"

#include "buffer_ref.hpp"

#include <doctest/doctest.h>

namespace test_worker_remote_buffers {

namespace {

using namespace coaccel;
using coaccel::worker::remote_buffers;
using test::buffer_ref;

constexpr std::uint32_t device = 7;
constexpr detail::context_identity identity{device, test::context_driver::generation};

} // namespace

TEST_SUITE_BEGIN("remote_buffers");

TEST_CASE("a slot has one buffer at a time")
{
    remote_buffers b;
    const auto first = buffer_ref(device, 3, 10);
    CHECK(b.add(first));
    CHECK_FALSE(b.add(buffer_ref(device, 3, 20)));
    CHECK(b.facts(first)->size == 10);
    b.remove(first);
    CHECK_FALSE(b.facts(first));
    CHECK(b.add(buffer_ref(device, 3, 20)));
}

TEST_CASE("a stale ref removes nothing")
{
    remote_buffers b;
    const auto made = buffer_ref(device, 3, 10);
    CHECK(b.add(made));
    auto stale = made;
    ++stale.version;
    b.remove(stale);
    b.remove(buffer_ref(device, 4, 10));
    CHECK_FALSE(b.check(made, dtype::f32, identity));
}

TEST_CASE("a ref is checked as the worker would check it")
{
    remote_buffers b;
    const auto made = buffer_ref(device, 3, 10);
    CHECK(b.add(made));
    const auto check = [&](auto change, dtype type = dtype::f32) {
        auto r = made;
        change(r);
        return b.check(r, type, identity);
    };
    CHECK_FALSE(check([](any_ref&) {}));
    CHECK_FALSE(check([](any_ref& r) { r.offset = 10, r.size = 0; }));
    CHECK(check([](any_ref& r) { r = {}; }) == errc::invalid_argument);
    CHECK(check([](any_ref& r) { ++r.device; }) == errc::wrong_device);
    CHECK(check([](any_ref& r) { ++r.generation; }) == errc::stale_ref);
    CHECK(check([](any_ref& r) { ++r.slot; }) == errc::released_ref);
    CHECK(check([](any_ref& r) { ++r.version; }) == errc::released_ref);
    CHECK(check([](any_ref&) {}, dtype::i32) == errc::wrong_dtype);
    CHECK(check([](any_ref& r) { r.type = dtype::i32; }) == errc::wrong_dtype);
    CHECK(check([](any_ref& r) { r.size = 11; }) == errc::out_of_bounds);
    CHECK(check([](any_ref& r) { r.offset = 11, r.size = 0; }) == errc::out_of_bounds);
    CHECK(check([](any_ref& r) { r.offset = 1; }) == errc::out_of_bounds);
}

TEST_CASE("a buffer is live until its caller releases it, even if it is removed later")
{
    remote_buffers b;
    CHECK(b.live() == 0);
    CHECK(b.add(buffer_ref(device, 1, 10)));
    CHECK(b.add(buffer_ref(device, 2, 10)));
    CHECK_FALSE(b.add(buffer_ref(device, 2, 10)));
    CHECK(b.live() == 2);
    b.released();
    CHECK(b.live() == 1);
    b.remove(buffer_ref(device, 1, 10));
    CHECK(b.live() == 1);
    b.released();
    b.released();
    CHECK(b.live() == 0);
}

TEST_SUITE_END();

} // namespace test_worker_remote_buffers
