#include "support.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio/error.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using host::backend;
using test::both_modes;
using test::host_with;
using test::task;

struct unknown {
    using reply = void;
    static constexpr std::string_view name = "test.unknown";
    static constexpr library lib = library::user;
    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(unknown, (), (), (), ())
};

host_options with_injector(host_mode mode, const std::shared_ptr<fault_injector>& injector, int threads = 2)
{
    auto o = host_with(mode, threads);
    o.injector = injector;
    return o;
}

backend::event after(backend& b, backend::stream& s)
{
    backend::event e;
    CHECK(b.record(e, s) == error_code());
    return e;
}

/// Tasks that note the order they run in.
struct log {
    std::unique_ptr<task> make(int mark)
    {
        return std::make_unique<task>([this, mark] {
            const std::scoped_lock lock(mutex);
            order.push_back(mark);
        });
    }

    std::mutex mutex;
    std::vector<int> order;
};

} // namespace

TEST_SUITE_BEGIN("host backend");

TEST_CASE("ops of a stream run in order")
{
    for (const auto mode : both_modes) {
        CAPTURE(mode);
        log notes;
        std::vector<std::unique_ptr<task>> tasks;
        std::vector<int> expected;
        backend b(host_with(mode, 4));
        auto s = b.make_stream(priority::normal).value();
        for (int i = 0; i < 500; ++i) {
            tasks.push_back(notes.make(i));
            expected.push_back(i);
            CHECK(b.enqueue(s, tasks.back()->op()) == error_code());
        }
        auto e = after(b, s);
        CHECK(b.synchronize(e) == error_code());
        CHECK(b.query(e).value() == progress::passed);
        CHECK(notes.order == expected);
        CHECK(b.finish(tasks.back()->op()) == error_code());
        CHECK(b.status() == error_code());
    }
}

TEST_CASE("an event of an empty stream has passed")
{
    for (const auto mode : both_modes) {
        backend b(host_with(mode));
        auto s = b.make_stream(priority::low).value();
        auto e = after(b, s);
        CHECK(b.query(e).value() == progress::passed);
        CHECK(b.synchronize(e) == error_code());
        test::told told;
        CHECK(b.notify(e, told.call()) == error_code());
        CHECK(told.count() == 1);
    }
}

TEST_CASE("in turn, an op has run when enqueue returns, without any thread")
{
    backend b(host_with(host_mode::in_turn));
    auto s = b.make_stream(priority::normal).value();
    std::thread::id where;
    task t([&] { where = std::this_thread::get_id(); });
    CHECK(b.enqueue(s, t.op()) == error_code());
    CHECK(where == std::this_thread::get_id());
    auto e = after(b, s);
    CHECK(b.query(e).value() == progress::passed);
    auto other = b.make_stream(priority::high).value();
    CHECK(b.wait(other, e) == error_code());
    CHECK(b.query(e).value() == progress::passed);
}

TEST_CASE("on a pool, an event is pending until its op has run")
{
    test::gate gate;
    task t([&] { gate.pass(); });
    backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(s, t.op()) == error_code());
    auto e = after(b, s);
    gate.wait_for(1);
    CHECK(b.query(e).value() == progress::pending);
    gate.open();
    CHECK(b.synchronize(e) == error_code());
    CHECK(b.query(e).value() == progress::passed);
}

TEST_CASE("a stream waits for another's event, and one thread is enough for any chain of waits")
{
    for (const int threads : {1, 2, 4}) {
        CAPTURE(threads);
        constexpr int length = 12;
        log notes;
        test::gate gate;
        task first([&] { gate.pass(); });
        std::vector<std::unique_ptr<task>> tasks;
        std::vector<int> expected;
        backend b(host_with(host_mode::pool, threads));
        auto head = b.make_stream(priority::normal).value();
        CHECK(b.enqueue(head, first.op()) == error_code());
        auto e = after(b, head);
        for (int i = 0; i < length; ++i) {
            auto s = b.make_stream(static_cast<priority>(i % 3)).value();
            tasks.push_back(notes.make(i));
            expected.push_back(i);
            CHECK(b.wait(s, e) == error_code());
            CHECK(b.enqueue(s, tasks.back()->op()) == error_code());
            e = after(b, s);
        }
        gate.wait_for(1);
        CHECK(b.query(e).value() == progress::pending);
        gate.open();
        CHECK(b.synchronize(e) == error_code());
        CHECK(notes.order == expected);
    }
}

TEST_CASE("a stream that waits for several others runs after all of them")
{
    for (const auto mode : both_modes) {
        log notes;
        std::vector<std::unique_ptr<task>> tasks;
        backend b(host_with(mode, 3));
        auto join = b.make_stream(priority::high).value();
        for (int i = 0; i < 6; ++i) {
            auto s = b.make_stream(priority::low).value();
            tasks.push_back(notes.make(i));
            CHECK(b.enqueue(s, tasks.back()->op()) == error_code());
            auto e = after(b, s);
            CHECK(b.wait(join, e) == error_code());
        }
        tasks.push_back(notes.make(99));
        CHECK(b.enqueue(join, tasks.back()->op()) == error_code());
        auto e = after(b, join);
        CHECK(b.synchronize(e) == error_code());
        REQUIRE(notes.order.size() == 7);
        CHECK(notes.order.back() == 99);
    }
}

TEST_CASE("an event marks what was enqueued before it, and nothing after")
{
    test::gate gate;
    task early([] {});
    task late([&] { gate.pass(); });
    backend b(host_with(host_mode::pool, 2));
    auto s = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(s, early.op()) == error_code());
    auto e = after(b, s);
    CHECK(b.enqueue(s, late.op()) == error_code());
    CHECK(b.synchronize(e) == error_code());
    gate.open();
    auto all = after(b, s);
    CHECK(b.synchronize(all) == error_code());
}

TEST_CASE("a notification comes once, when its event passes")
{
    test::gate gate;
    task t([&] { gate.pass(); });
    test::told before, both, after_it;
    backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(s, t.op()) == error_code());
    auto e = after(b, s);
    CHECK(b.notify(e, before.call()) == error_code());
    CHECK(b.notify(e, both.call()) == error_code());
    CHECK(b.notify(e, both.call()) == error_code());
    gate.wait_for(1);
    CHECK(before.count() == 0);
    gate.open();
    before.wait_for(1);
    both.wait_for(2);
    CHECK(b.synchronize(e) == error_code());
    CHECK(b.notify(e, after_it.call()) == error_code());
    CHECK(after_it.count() == 1);
    CHECK(before.count() == 1);
}

TEST_CASE("urgent streams overtake others")
{
    log notes;
    test::gate gate;
    task blocker([&] { gate.pass(); });
    auto low = notes.make(0), normal = notes.make(1), high = notes.make(2);
    backend b(host_with(host_mode::pool, 1));
    auto first = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(first, blocker.op()) == error_code());
    gate.wait_for(1);
    auto ls = b.make_stream(priority::low).value();
    auto ns = b.make_stream(priority::normal).value();
    auto hs = b.make_stream(priority::high).value();
    CHECK(b.enqueue(ls, low->op()) == error_code());
    CHECK(b.enqueue(ns, normal->op()) == error_code());
    CHECK(b.enqueue(hs, high->op()) == error_code());
    gate.open();
    auto e = after(b, ls);
    CHECK(b.synchronize(e) == error_code());
    CHECK(notes.order == std::vector<int>{2, 1, 0});
}

TEST_CASE("the n-th op poisons: what came before has run, nothing does after")
{
    for (const auto mode : both_modes) {
        CAPTURE(mode);
        host_faults plan;
        plan.poison_at = 3;
        log notes;
        std::vector<std::unique_ptr<task>> tasks;
        test::told second, third, fifth;
        backend b(with_injector(mode, std::make_shared<fault_injector>(plan)));
        auto s = b.make_stream(priority::normal).value();
        std::vector<backend::event> ends;
        for (int i = 1; i <= 5; ++i) {
            tasks.push_back(notes.make(i));
            (void)b.enqueue(s, tasks.back()->op());
            ends.push_back(after(b, s));
        }
        CHECK(b.notify(ends[1], second.call()) == error_code());
        CHECK(b.notify(ends[2], third.call()) == error_code());
        CHECK(b.notify(ends[4], fifth.call()) == error_code());
        test::wait_for_death(b);
        CHECK(notes.order == std::vector<int>{1, 2});
        CHECK(second.count() == 1);
        CHECK(third.count() == 0);
        // Also what had passed is unknown now.
        for (auto& e : ends) {
            CHECK(b.query(e).error() == errc::context_lost);
            CHECK(b.synchronize(e) == errc::context_lost);
        }
        CHECK(b.enqueue(s, tasks[0]->op()) == errc::context_lost);
        CHECK(b.allocate(s, 8).error() == errc::context_lost);
        CHECK(b.status() == errc::context_lost);
        CHECK(fifth.count() == 0);
        CHECK(notes.order.size() == 2);
    }
}

TEST_CASE("a fault holds up the streams that wait for it")
{
    auto injector = std::make_shared<fault_injector>();
    log notes;
    auto bad = notes.make(1), behind = notes.make(2);
    test::told told;
    test::gate gate;
    task blocker([&] { gate.pass(); });
    backend b(with_injector(host_mode::pool, injector));
    auto s = b.make_stream(priority::normal).value();
    auto other = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(s, blocker.op()) == error_code());
    gate.wait_for(1);
    injector->poison();
    CHECK(b.enqueue(s, bad->op()) == error_code());
    auto e = after(b, s);
    CHECK(b.wait(other, e) == error_code());
    CHECK(b.enqueue(other, behind->op()) == error_code());
    auto end = after(b, other);
    CHECK(b.notify(end, told.call()) == error_code());
    gate.open();
    test::wait_for_death(b);
    CHECK(notes.order.empty());
    CHECK(told.count() == 0);
}

TEST_CASE("a hung op does not end until its context is condemned, and never runs")
{
    host_faults plan;
    plan.hang_at = 1;
    log notes;
    auto hung = notes.make(1), behind = notes.make(2), elsewhere = notes.make(3);
    test::told told;
    backend b(with_injector(host_mode::pool, std::make_shared<fault_injector>(plan)));
    auto s = b.make_stream(priority::normal).value();
    auto other = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(s, hung->op()) == error_code());
    auto e = after(b, s);
    CHECK(b.enqueue(s, behind->op()) == error_code());
    CHECK(b.notify(e, told.call()) == error_code());
    CHECK(b.query(e).value() == progress::pending);
    CHECK(b.status() == error_code());
    std::thread waiter([&] { CHECK(b.synchronize(e) == errc::context_lost); });
    b.abort();
    waiter.join();
    test::wait_for_death(b);
    CHECK(b.query(e).error() == errc::context_lost);
    CHECK(notes.order.empty());
    CHECK(told.count() == 0);
    CHECK(b.enqueue(other, elsewhere->op()) == errc::context_lost);
}

TEST_CASE("an op that is to hang in turn kills its context instead of holding up the caller")
{
    auto injector = std::make_shared<fault_injector>();
    log notes;
    auto t = notes.make(1);
    backend b(with_injector(host_mode::in_turn, injector));
    auto s = b.make_stream(priority::normal).value();
    injector->hang();
    CHECK(b.enqueue(s, t->op()) == error_code());
    CHECK(b.status() == errc::context_lost);
    CHECK(notes.order.empty());
    CHECK(injector->played() == 1);
}

TEST_CASE("death is admitted only when the ops still running have left the callers' memory")
{
    test::gate gate;
    std::atomic<bool> left{false};
    task t([&] {
        gate.pass();
        left = true;
    });
    test::told told;
    backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(s, t.op()) == error_code());
    auto e = after(b, s);
    CHECK(b.notify(e, told.call()) == error_code());
    gate.wait_for(1);
    b.abort();
    CHECK(b.status() == error_code());
    CHECK(b.query(e).error() == errc::context_lost);
    CHECK(b.synchronize(e) == errc::context_lost);
    CHECK(b.enqueue(s, t.op()) == errc::context_lost);
    CHECK(b.status() == error_code());
    gate.open();
    test::wait_for_death(b);
    CHECK(left);
    CHECK(told.count() == 0);
    b.abort();
    CHECK(b.status() == errc::context_lost);
}

TEST_CASE("a delay is added to each op, and cut short by an abort")
{
    host_faults plan;
    plan.delay = 5ms;
    task t([] {});
    {
        backend b(with_injector(host_mode::pool, std::make_shared<fault_injector>(plan)));
        auto s = b.make_stream(priority::normal).value();
        const auto start = std::chrono::steady_clock::now();
        CHECK(b.enqueue(s, t.op()) == error_code());
        CHECK(b.enqueue(s, t.op()) == error_code());
        auto e = after(b, s);
        CHECK(b.synchronize(e) == error_code());
        CHECK(std::chrono::steady_clock::now() - start >= 10ms);
    }
    plan.delay = 1h;
    backend b(with_injector(host_mode::pool, std::make_shared<fault_injector>(plan)));
    auto s = b.make_stream(priority::normal).value();
    CHECK(b.enqueue(s, t.op()) == error_code());
    b.abort();
    test::wait_for_death(b);
}

TEST_CASE("a backend that goes away with work pending waits for what runs and drops the rest")
{
    std::atomic<int> runs{0};
    test::gate gate;
    task running([&] {
        gate.pass();
        ++runs;
    });
    task dropped([&] { runs += 100; });
    auto b = std::make_unique<backend>(host_with(host_mode::pool, 1));
    auto s = b->make_stream(priority::normal).value();
    CHECK(b->enqueue(s, running.op()) == error_code());
    CHECK(b->enqueue(s, dropped.op()) == error_code());
    gate.wait_for(1);
    // The op can only go on once the backend is being destroyed or is about to be.
    b->abort();
    std::thread opener([&] { gate.open(); });
    b.reset();
    opener.join();
    CHECK(runs == 1);
}

TEST_CASE("memory is released in the order of its stream")
{
    test::gate gate;
    task t([&] { gate.pass(); });
    backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    void* memory = b.allocate(s, 1000).value();
    const auto used = b.memory().used;
    CHECK(used >= 1000);
    CHECK(b.enqueue(s, t.op()) == error_code());
    gate.wait_for(1);
    b.release(s, memory, 1000);
    CHECK(b.memory().used == used);
    void* other = b.allocate(s, 1000).value();
    CHECK(other != memory);
    gate.open();
    auto e = after(b, s);
    CHECK(b.synchronize(e) == error_code());
    CHECK(b.memory().used == used);
    b.release(s, other, 1000);
    CHECK(b.memory().used == 0);
    CHECK(b.allocate(s, 1000));
}

TEST_CASE("memory has a limit, which a fault can lower")
{
    for (const auto mode : both_modes) {
        auto options = host_with(mode);
        options.memory_limit = 4096;
        options.faults.out_of_memory_at = 2048;
        backend b(options);
        auto s = b.make_stream(priority::normal).value();
        CHECK(b.memory().total == 4096);
        void* first = b.allocate(s, 1024).value();
        CHECK(b.allocate(s, 1025).error() == errc::out_of_memory);
        CHECK(b.allocate(s, 1024));
        CHECK(b.allocate(s, 1).error() == errc::out_of_memory);
        b.release(s, first, 1024);
        CHECK(b.allocate(s, 512).has_value());
        b.trim();
        CHECK(b.status() == error_code());
        options.faults.out_of_memory_at = 0;
        backend limited(options);
        auto ls = limited.make_stream(priority::normal).value();
        CHECK(limited.allocate(ls, 4097).error() == errc::out_of_memory);
        CHECK(limited.allocate(ls, ~std::size_t(0)).error() == errc::out_of_memory);
        CHECK(limited.allocate(ls, 4096));
    }
}

TEST_CASE("create refuses bad options, and starts as often as it is told to")
{
    auto bad = host_with(host_mode::pool, -1);
    CHECK(backend::create(bad).error() == errc::invalid_option);
    host_faults plan;
    plan.refuse_starts = 2;
    auto injector = std::make_shared<fault_injector>(plan);
    for (const auto mode : both_modes) {
        CHECK(backend::create(with_injector(mode, injector)).error() == errc::start_failed);
        CHECK(backend::create(with_injector(mode, injector)).error() == errc::start_failed);
        auto made = backend::create(with_injector(mode, injector));
        REQUIRE(made);
        CHECK(made.value()->status() == error_code());
        injector->refuse_starts(2);
    }
}

TEST_CASE("an op without a kernel is not supported")
{
    for (const auto mode : both_modes) {
        backend b(host_with(mode));
        auto s = b.make_stream(priority::normal).value();
        CHECK_FALSE(b.supports(info_of<unknown>()));
        CHECK(b.supports(info_of<memory::fill<float>>()));
        CHECK(b.supports(info_of<blas::gemm<bfloat16>>()));
        const unknown data;
        bound_op op{.info = &info_of<unknown>(), .op = &data};
        CHECK(b.enqueue(s, op) == errc::unsupported_op);
        auto e = after(b, s);
        CHECK(b.synchronize(e) == error_code());
        CHECK(b.status() == error_code());
    }
}

TEST_CASE("an op's own failure is told when it is finished")
{
    backend b(host_with(host_mode::in_turn));
    bound_op op;
    CHECK(b.finish(op) == error_code());
    op.status = errc::out_of_memory;
    CHECK(b.finish(op) == errc::out_of_memory);
}

TEST_CASE("errors are classified by what the device does about them")
{
    CHECK(backend::classify(errc::context_lost) == fault::context_lost);
    CHECK(backend::classify(errc::device_lost) == fault::device_lost);
    CHECK(backend::classify(errc::out_of_memory) == fault::busy);
    CHECK(backend::classify(errc::overlap) == fault::caller);
    CHECK(backend::classify(boost::asio::error::eof) == fault::library);
}

TEST_SUITE_END();
