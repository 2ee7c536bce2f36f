#include "device/context_supply.hpp"

#include "support/forked_child.hpp"
#include "support/gate.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <thread>

namespace test_device_context_supply {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using kind = blocking_pool::kind;

struct fixture {
    explicit fixture(bool blocks = true)
    {
        source.blocks = blocks;
        // The factory owns something, whose end the tests observe.
        source.make = [owned = owned](context_identity, context_events&,
                                      const context_options&) -> result<std::unique_ptr<context>> {
            return errc::start_failed;
        };
        seen = owned;
        owned.reset();
    }

    context_supply& supply()
    {
        if (!made)
            made = std::make_unique<context_supply>(ex, std::move(source));
        return *made;
    }

    /// Opens when the factory has been destroyed.
    test::gate destroyed;
    std::shared_ptr<int> owned{new int(), [gate = destroyed](const int* p) mutable {
                                   delete p;
                                   gate.open();
                               }};
    std::weak_ptr<int> seen;
    context_source source;
    asio::io_context io;
    device_executor ex{io.get_executor()};
    std::unique_ptr<context_supply> made;
};

} // namespace

TEST_SUITE_BEGIN("context_supply");

TEST_CASE("a device without a source is unusable")
{
    asio::io_context io;
    const device_executor ex{io.get_executor()};
    context_supply none(ex, errc::backend_unavailable);
    CHECK(none.unusable() == errc::backend_unavailable);
    none.give_up();
    none.release_standbys();
    none.drop_factory();
    CHECK_FALSE(none.has_standby());
    fixture f;
    CHECK_FALSE(f.supply().unusable());
}

TEST_CASE("jobs run on another thread, unless the source does not block")
{
    for (const bool blocks : {true, false}) {
        fixture f(blocks);
        CHECK(f.supply().blocks() == blocks);
        for (int i = 0; i < 3; ++i) {
            test::gate done;
            std::thread::id where;
            const auto job = [&] {
                where = std::this_thread::get_id();
                done.open();
            };
            if (i == 0)
                CHECK_FALSE(f.supply().run(kind::compiling, job));
            else if (i == 1)
                CHECK_FALSE(f.supply().run_creation(job));
            else
                f.supply().run_end(job);
            done.pass();
            CHECK((where == std::this_thread::get_id()) == !blocks);
        }
    }
}

TEST_CASE("the destruction of the execution context hurries a creation")
{
    // Declared before the fixture, so that it is destroyed after the threads have ended.
    test::gate hurried;
    fixture f;
    f.source.give_up = [&] { hurried.open(); };
    CHECK_FALSE(f.supply().run_creation([&] { hurried.pass(); }));
}

TEST_CASE("the functions of the source are optional, and are called if they exist")
{
    fixture f;
    int gave_up = 0;
    test::gate rested;
    std::thread::id where;
    f.source.give_up = [&] { ++gave_up; };
    f.source.has_standby = [] { return true; };
    f.source.rest = [&] {
        where = std::this_thread::get_id();
        rested.open();
    };
    f.supply().give_up();
    CHECK(gave_up == 1);
    CHECK(f.supply().has_standby());
    f.supply().release_standbys();
    rested.pass();
    CHECK(where != std::this_thread::get_id());
}

TEST_CASE("the factory is destroyed off the executor, once")
{
    fixture f;
    CHECK_FALSE(f.seen.expired());
    f.supply().drop_factory();
    f.destroyed.pass();
    f.supply().drop_factory();
}

TEST_CASE("the factory can be taken")
{
    fixture f;
    auto factory = f.supply().take_factory();
    CHECK(factory);
    CHECK_FALSE(f.supply().take_factory());
    f.supply().drop_factory();
    CHECK_FALSE(f.seen.expired());
    factory = nullptr;
    CHECK(f.seen.expired());
}

TEST_CASE("everything that is left can be taken")
{
    fixture f;
    f.source.has_standby = [] { return true; };
    {
        const auto left = f.supply().take_all();
        CHECK(left.make);
        CHECK_FALSE(f.supply().has_standby());
        CHECK_FALSE(f.seen.expired());
    }
    CHECK(f.seen.expired());
}

TEST_CASE("in a forked child a source with threads is orphaned, and nothing of it is destroyed")
{
    fixture f;
    CHECK_FALSE(f.supply().orphaned());
    const int status = test::in_forked_child(f.io, test::notified::yes, [&]() -> int {
        if (!f.supply().orphaned())
            return test::first_mistake;
        if (!f.supply().notice_orphan() || f.supply().notice_orphan())
            return test::first_mistake + 1;
        f.supply().drop_factory();
        (void)f.supply().take_all();
        return f.seen.expired() ? test::first_mistake + 2 : test::well;
    });
    CHECK(status == test::well);
    CHECK_FALSE(f.supply().orphaned());
    CHECK(f.supply().notice_orphan());
}

TEST_CASE("in a forked child a source without threads remains usable")
{
    fixture f(false);
    CHECK_FALSE(f.supply().orphaned());
    const int status = test::in_forked_child(f.io, test::notified::yes, [&]() -> int {
        if (f.supply().orphaned())
            return test::first_mistake;
        f.supply().drop_factory();
        return f.seen.expired() ? test::well : test::first_mistake + 1;
    });
    CHECK(status == test::well);
}

TEST_SUITE_END();

} // namespace test_device_context_supply
