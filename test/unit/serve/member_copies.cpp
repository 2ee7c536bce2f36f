#include "serve/member_copies.hpp"

#include "large_rows_fixture.hpp"
#include "support/forked_child.hpp"
#include "support/no_threads.hpp"
#include "support/sanitized.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>

namespace test_serve_member_copies {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::member_copies;
using test::copied;
using test::first_mistake;
using test::held_copies;
using test::in_forked_child;
using test::large_fixture;
using test::never_answered;
using test::notified;
using test::runs_until;
using test::well;

/// A copy that is held by a gate.
struct held_copy {
    explicit held_copy(member_copies& copies, asio::io_context& io)
        : job(copies.start(
              io,
              [this] {
                  gate.pass();
                  copied = true;
              },
              [this] { done.arrive(); }))
    {
        REQUIRE(job);
    }

    test::gate gate;
    test::gate done;
    std::atomic<bool> copied{false};
    member_copies::job_ptr job;
};

TEST_SUITE("member_copies")
{
    TEST_CASE("a copy is run on another thread, then its end is reported")
    {
        asio::io_context io;
        member_copies copies;
        std::thread::id where;
        test::gate done;
        REQUIRE(copies.start(io, [&] { where = std::this_thread::get_id(); }, [&] { done.arrive(); }));
        done.wait_for(1);
        CHECK(where != std::thread::id());
        CHECK(where != std::this_thread::get_id());
    }

    TEST_CASE("what a copy uses can be changed until it begins")
    {
        asio::io_context io;
        member_copies copies;
        held_copy first(copies, io);
        first.gate.wait_for(1);
        CHECK_FALSE(copies.before(*first.job, [] { FAIL("not called"); }));
        CHECK_FALSE(copies.withdraw(*first.job));

        std::optional<held_copies> held(std::in_place, io, held_copies::threads - 1);
        int value = 1, seen = 0;
        test::gate done;
        const auto waiting = copies.start(io, [&] { seen = value; }, [&] { done.arrive(); });
        REQUIRE(waiting);
        CHECK(copies.before(*waiting, [&] { value = 2; }));
        held.reset();
        first.gate.open();
        done.wait_for(1);
        CHECK(seen == 2);
        first.done.wait_for(1);
    }

    TEST_CASE("a copy that is withdrawn never begins, and others do")
    {
        asio::io_context io;
        member_copies copies;
        std::atomic<int> wrong{0};
        test::gate done;
        {
            const held_copies held(io);
            const auto job = copies.start(io, [&] { ++wrong; }, [&] { ++wrong; });
            REQUIRE(job);
            CHECK(copies.withdraw(*job));
            CHECK(copies.withdraw(*job));
            for (int i = 0; i < held_copies::threads; ++i)
                REQUIRE(copies.start(io, [] {}, [&] { done.arrive(); }));
        }
        done.wait_for(held_copies::threads);
        CHECK(wrong == 0);
    }

    TEST_CASE("finish waits for a copy that runs")
    {
        asio::io_context io;
        member_copies copies;
        held_copy copy(copies, io);
        copy.gate.wait_for(1);
        // Later than a finish() that does not wait would return.
        std::jthread opens([&] {
            std::this_thread::sleep_for(100ms);
            copy.gate.open();
        });
        copies.finish();
        CHECK(copy.copied);
        copy.done.wait_for(1);
    }

    TEST_CASE("finish does not wait for a copy that has not begun, which never does")
    {
        std::atomic<int> wrong{0};
        {
            asio::io_context io;
            const held_copies held(io);
            {
                member_copies copies;
                REQUIRE(copies.start(io, [&] { ++wrong; }, [&] { ++wrong; }));
                copies.finish();
            }
        }
        CHECK(wrong == 0);
    }

    TEST_CASE("without a thread there is no copy" * doctest::skip(test::sanitized))
    {
        asio::io_context io;
        member_copies copies;
        const test::no_threads none;
        CHECK_FALSE(copies.start(io, [] { FAIL("not called"); }, [] { FAIL("not called"); }));
        copies.finish();
    }

    TEST_CASE("a batcher that gets no thread copies on its executor" * doctest::skip(test::sanitized))
    {
        large_fixture f;
        const auto b = f.make_large();
        const auto small = f.make();
        // The threads of the device have started.
        f.check_right(f.start_many(small, 9));
        const test::no_threads none;
        f.check_right({f.start_large(b, 1), f.start_large(b, 2)});
        f.check_right({f.start_large(b, 3, 2)});
        CHECK(b.stats().run_time.count == 2);
    }

    TEST_CASE("a batch that is copied at a fork ends in the child, and goes on in the parent")
    {
        for (const auto knows : {notified::yes, notified::no})
            for (const auto what : {copied::inputs, copied::outputs}) {
                CAPTURE(knows);
                CAPTURE(int(what));
                large_fixture f;
                const auto b = f.make_large();
                std::optional<held_copies> held;
                const auto all = f.start_waiting(b, what, held);
                const int status = in_forked_child(f.io, knows, [&]() -> int {
                    // Has no effect on a request in a batch, but causes a turn.
                    if (knows == notified::no)
                        all[0]->signal.emit(asio::cancellation_type::total);
                    if (!runs_until(f.io, [&] { return all[0]->ended() && all[1]->ended(); }))
                        return never_answered;
                    for (const auto& r : all)
                        if (r->ec != errc::context_lost || r->y != std::vector<float>(test::large_row, -1))
                            return first_mistake;
                    f.io.restart();
                    f.io.run_for(15s);
                    return f.io.stopped() ? well : never_answered + 1;
                });
                CHECK(status == well);
                held.reset();
                f.check_right(all);
            }
    }

    TEST_CASE("members of a batch that is copied at a fork can give up in the child")
    {
        for (const bool both : {false, true}) {
            CAPTURE(both);
            large_fixture f;
            const auto b = f.make_large();
            large_fixture::running_copy run(f, b, copied::inputs);
            const int status = in_forked_child(f.io, notified::no, [&]() -> int {
                run.signal.emit(asio::cancellation_type::terminal);
                if (both)
                    run.second->signal.emit(asio::cancellation_type::terminal);
                if (!runs_until(f.io, [&] { return run.completions > 0 && run.second->ended(); }))
                    return never_answered;
                if (run.ec != asio::error::operation_aborted)
                    return first_mistake;
                if (both ? run.second->ec != asio::error::operation_aborted : run.second->ec != errc::context_lost)
                    return first_mistake + 1;
                f.io.restart();
                f.io.run_for(15s);
                if (!f.io.stopped() || b.stats().in_flight != 0)
                    return never_answered + 1;
                return run.completions == 1 && run.second->completions == 1 ? well : first_mistake + 2;
            });
            CHECK(status == well);
            run.held.open();
            CHECK_FALSE(run.outcome());
            f.check_right({run.second});
        }
    }
}

} // namespace test_serve_member_copies
