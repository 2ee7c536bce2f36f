#include "await_elsewhere.hpp"
#include "batched_plans.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/serve/replica_pool.hpp>

#include <doctest/doctest.h>

#include <string>

namespace test_serve_replica_pool {

using namespace coaccel;
using serve::balance;
using pool_type = serve::replica_pool<std::string>;

struct fixture : test::device_fixture {
    fixture() : device_fixture(on_host(with_mode(host_mode::pool))), other(test::make_device(io)) {}
    ~fixture() { other = {}; }

    pool_type make(const serve::replica_pool_options& o = {})
    {
        return pool_type::create(io.get_executor(), {{"first", gpu}, {"second", other}}, o).value();
    }

    device other;
};

TEST_SUITE("replica_pool")
{
    TEST_CASE("leases spread over the replicas, and give them back")
    {
        fixture f;
        const auto pool = f.make();
        auto a = pool.pick().value();
        auto b = pool.pick().value();
        CHECK(*a == "first");
        CHECK(*b == "second");
        CHECK(b->size() == 6);
        CHECK(pool.stats()[0].load == 1);
        b.release();
        CHECK(pool.stats()[1].load == 0);
        CHECK_FALSE(b);
        // Again the less loaded one.
        CHECK(pool.pick().value().index() == 1);
        a = {};
        CHECK(pool.stats()[0].load == 0);
        CHECK(pool.stats()[0].picked == 1);
        CHECK(pool.stats()[1].picked == 2);
    }

    TEST_CASE("the same key gets the same replica")
    {
        fixture f;
        const auto pool = f.make({.how = balance::sticky});
        for (std::uint64_t key = 0; key < 20; ++key) {
            const auto home = pool.pick(key).value().index();
            for (int i = 0; i < 3; ++i)
                CHECK(pool.pick(key).value().index() == home);
        }
    }

    TEST_CASE("a replica whose device has stopped leaves the pool; without any, the error says so")
    {
        fixture f;
        const auto pool = f.make();
        REQUIRE(test::await(f.io, f.gpu.async_shutdown(shutdown::drain)));
        for (int i = 0; i < 4; ++i)
            CHECK(*pool.pick().value() == "second");
        REQUIRE(test::await(f.io, f.other.async_shutdown(shutdown::drain)));
        const auto none = pool.pick();
        REQUIRE_FALSE(none);
        CHECK(none.error() == errc::device_failed);
        CHECK(none.error().message() == "pool: none of its 2 devices works; the first one is stopped");
    }

    TEST_CASE("a replica with max_load requests gets no more")
    {
        fixture f;
        const auto pool = f.make({.max_load = 1});
        const auto a = pool.pick().value();
        const auto b = pool.pick().value();
        const auto c = pool.pick();
        REQUIRE_FALSE(c);
        CHECK(c.error() == errc::queue_full);
        CHECK(c.error().message() == "pool: each replica has 1 requests");
    }

    TEST_CASE("drain waits for the last request, and resume brings the replica back")
    {
        fixture f;
        const auto pool = f.make();
        auto lease = pool.pick().value();
        bool drained = false;
        pool.async_drain(0, [&](error_code ec) { drained = !ec; });
        f.io.poll();
        CHECK_FALSE(drained);
        CHECK(pool.stats()[0].draining);
        for (int i = 0; i < 3; ++i)
            CHECK(pool.pick().value().index() == 1);
        lease.release();
        CHECK_FALSE(drained);
        test::run_until(f.io, [&] { return drained; });
        // At once if there is none.
        REQUIRE(test::await(f.io, pool.async_drain(0)));
        REQUIRE(test::await(f.io, pool.async_drain(1)));
        const auto none = pool.pick();
        REQUIRE_FALSE(none);
        CHECK(none.error() == errc::actor_stopped);
        pool.resume(0);
        pool.resume(7);
        CHECK(pool.pick().value().index() == 0);
    }

    TEST_CASE("waiting for a drain can be cancelled")
    {
        fixture f;
        const auto pool = f.make();
        const auto lease = pool.pick().value();
        asio::cancellation_signal signal;
        std::optional<error_code> ended;
        pool.async_drain(0, asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { ended = ec; }));
        signal.emit(asio::cancellation_type::total);
        test::run_until(f.io, [&] { return ended.has_value(); });
        CHECK(*ended == asio::error::operation_aborted);
        CHECK(pool.stats()[0].draining);
    }

    TEST_CASE("bad input is refused")
    {
        fixture f;
        CHECK(pool_type::create(f.io.get_executor(), {}).error().message() == "pool: no replica is given");
        CHECK(pool_type::create(f.io.get_executor(), {{"x", device()}}).error() == errc::invalid_argument);
        CHECK(pool_type::create(f.io.get_executor(), {{"x", f.gpu}}, {.max_load = 0}).error() == errc::invalid_option);
        CHECK(pool_type().pick().error() == errc::invalid_argument);
        CHECK(pool_type().stats().empty());
        const auto none = test::await(f.io, f.make().async_drain(2));
        REQUIRE_FALSE(none);
        CHECK(none.error().message() == "pool: there is no replica 2; the pool has 2");
        const auto empty = test::await_elsewhere(pool_type().async_drain(0));
        REQUIRE_FALSE(empty);
        CHECK(empty.error() == errc::invalid_argument);
    }

    TEST_CASE("plans on two devices run through a pool")
    {
        fixture f;
        std::vector<serve::replica<plan>> plans;
        for (const device& d : {f.gpu, f.other})
            plans.push_back({test::await(f.io, d.async_load(test::plus_one(1).plan)).value(), d});
        auto pool = serve::replica_pool<plan>::create(f.io.get_executor(), std::move(plans)).value();
        for (int i = 0; i < 10; ++i) {
            std::vector<float> x(4, static_cast<float>(i));
            std::vector<float> y(4);
            const auto lease = pool.pick().value();
            REQUIRE(test::await(f.io, lease->async_run(from(x), to(y))));
            CHECK(y[0] == static_cast<float>(i + 1));
        }
        CHECK(pool.stats()[0].picked == 5);
    }
}

} // namespace test_serve_replica_pool
