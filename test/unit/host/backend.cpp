#include "support.hpp"
#include "support/start_op.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio/error.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <vector>

namespace test_host_backend {

namespace {

using namespace coaccel;
using host_backend = coaccel::host::backend;
using test::after;
using test::both_modes;
using test::host_with;
using test::journal;
using test::task;

struct unknown {
    using reply = void;
    static constexpr std::string_view name = "test.unknown";
    static constexpr library lib = library::user;
    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(unknown, (), (), (), ())
};

} // namespace

TEST_SUITE_BEGIN("host backend");

TEST_CASE("ops of a stream run in order")
{
    for (const auto mode : both_modes) {
        CAPTURE(mode);
        journal notes;
        std::vector<std::unique_ptr<task>> tasks;
        std::vector<int> expected;
        host_backend b(host_with(mode, 4));
        auto s = b.make_stream(priority::normal).value();
        for (int i = 0; i < 500; ++i) {
            tasks.push_back(notes.make(i));
            expected.push_back(i);
            CHECK(test::start(b, s, tasks.back()->op()) == error_code());
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
        host_backend b(host_with(mode));
        auto s = b.make_stream(priority::low).value();
        auto e = after(b, s);
        CHECK(b.query(e).value() == progress::passed);
        CHECK(b.synchronize(e) == error_code());
        test::told told;
        CHECK(b.notify(e, told.call()) == error_code());
        CHECK(told.count() == 1);
    }
}

TEST_CASE("in inline mode an op has run when enqueue returns, without any thread")
{
    host_backend b(host_with(host_mode::inline_));
    auto s = b.make_stream(priority::normal).value();
    std::thread::id where;
    task t([&] { where = std::this_thread::get_id(); });
    CHECK(test::start(b, s, t.op()) == error_code());
    CHECK(where == std::this_thread::get_id());
    auto e = after(b, s);
    CHECK(b.query(e).value() == progress::passed);
    auto other = b.make_stream(priority::high).value();
    CHECK(b.wait(other, e) == error_code());
    CHECK(b.query(e).value() == progress::passed);
}

TEST_CASE("in pool mode an event is pending until its op has run")
{
    test::gate gate;
    task t([&] { gate.pass(); });
    host_backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    CHECK(test::start(b, s, t.op()) == error_code());
    auto e = after(b, s);
    gate.wait_for(1);
    CHECK(b.query(e).value() == progress::pending);
    gate.open();
    CHECK(b.synchronize(e) == error_code());
    CHECK(b.query(e).value() == progress::passed);
}

TEST_CASE("a stream waits for another's event, and one thread suffices for any chain of waits")
{
    for (const int threads : {1, 2, 4}) {
        CAPTURE(threads);
        constexpr int length = 12;
        journal notes;
        test::gate gate;
        task first([&] { gate.pass(); });
        std::vector<std::unique_ptr<task>> tasks;
        std::vector<int> expected;
        host_backend b(host_with(host_mode::pool, threads));
        auto head = b.make_stream(priority::normal).value();
        CHECK(test::start(b, head, first.op()) == error_code());
        auto e = after(b, head);
        for (int i = 0; i < length; ++i) {
            auto s = b.make_stream(static_cast<priority>(i % 3)).value();
            tasks.push_back(notes.make(i));
            expected.push_back(i);
            CHECK(b.wait(s, e) == error_code());
            CHECK(test::start(b, s, tasks.back()->op()) == error_code());
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
        journal notes;
        std::vector<std::unique_ptr<task>> tasks;
        host_backend b(host_with(mode, 3));
        auto join = b.make_stream(priority::high).value();
        for (int i = 0; i < 6; ++i) {
            auto s = b.make_stream(priority::low).value();
            tasks.push_back(notes.make(i));
            CHECK(test::start(b, s, tasks.back()->op()) == error_code());
            auto e = after(b, s);
            CHECK(b.wait(join, e) == error_code());
        }
        tasks.push_back(notes.make(99));
        CHECK(test::start(b, join, tasks.back()->op()) == error_code());
        auto e = after(b, join);
        CHECK(b.synchronize(e) == error_code());
        REQUIRE(notes.order.size() == 7);
        CHECK(notes.order.back() == 99);
    }
}

TEST_CASE("an event marks the ops enqueued before it, and no later ones")
{
    test::gate gate;
    task early([] {});
    task late([&] { gate.pass(); });
    host_backend b(host_with(host_mode::pool, 2));
    auto s = b.make_stream(priority::normal).value();
    CHECK(test::start(b, s, early.op()) == error_code());
    auto e = after(b, s);
    CHECK(test::start(b, s, late.op()) == error_code());
    CHECK(b.synchronize(e) == error_code());
    gate.open();
    auto all = after(b, s);
    CHECK(b.synchronize(all) == error_code());
}

TEST_CASE("a notification arrives once, when its event passes")
{
    test::gate gate;
    task t([&] { gate.pass(); });
    test::told before, both, after_it;
    host_backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    CHECK(test::start(b, s, t.op()) == error_code());
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
    journal notes;
    test::gate gate;
    task blocker([&] { gate.pass(); });
    auto low = notes.make(0), normal = notes.make(1), high = notes.make(2);
    host_backend b(host_with(host_mode::pool, 1));
    auto first = b.make_stream(priority::normal).value();
    CHECK(test::start(b, first, blocker.op()) == error_code());
    gate.wait_for(1);
    auto ls = b.make_stream(priority::low).value();
    auto ns = b.make_stream(priority::normal).value();
    auto hs = b.make_stream(priority::high).value();
    CHECK(test::start(b, ls, low->op()) == error_code());
    CHECK(test::start(b, ns, normal->op()) == error_code());
    CHECK(test::start(b, hs, high->op()) == error_code());
    gate.open();
    auto e = after(b, ls);
    CHECK(b.synchronize(e) == error_code());
    CHECK(notes.order == std::vector<int>{2, 1, 0});
}

TEST_CASE("memory is released in the order of its stream")
{
    test::gate gate;
    task t([&] { gate.pass(); });
    host_backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    void* memory = b.allocate(s, 1000).value();
    const auto used = b.memory().used;
    CHECK(used >= 1000);
    CHECK(test::start(b, s, t.op()) == error_code());
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

TEST_CASE("the memory limit holds, and an injected fault can lower it")
{
    for (const auto mode : both_modes) {
        auto options = host_with(mode);
        options.memory_limit = 4096;
        options.faults.out_of_memory_at = 2048;
        host_backend b(options);
        auto s = b.make_stream(priority::normal).value();
        CHECK(b.memory().total == 4096);
        void* first = b.allocate(s, 1024).value();
        CHECK(b.allocate(s, 1025).error() == errc::out_of_memory);
        CHECK(b.allocate(s, 1024));
        CHECK(b.allocate(s, 1).error() == errc::out_of_memory);
        b.release(s, first, 1024);
        CHECK(b.allocate(s, 512).has_value());
        CHECK(b.status() == error_code());
        options.faults.out_of_memory_at = 0;
        host_backend limited(options);
        auto ls = limited.make_stream(priority::normal).value();
        CHECK(limited.allocate(ls, 4097).error() == errc::out_of_memory);
        CHECK(limited.allocate(ls, ~std::size_t(0)).error() == errc::out_of_memory);
        CHECK(limited.allocate(ls, 4096));
    }
}

TEST_CASE("an op without a kernel is not supported")
{
    for (const auto mode : both_modes) {
        host_backend b(host_with(mode));
        auto s = b.make_stream(priority::normal).value();
        bound_op op{.info = &info_of<memory::fill<float>>()};
        CHECK_FALSE(b.find_code(op));
        op.info = &info_of<blas::gemm<bfloat16>>();
        CHECK_FALSE(b.find_code(op));
        const unknown data;
        op = {.info = &info_of<unknown>(), .op = &data};
        CHECK(b.find_code(op) == errc::unsupported_op);
        CHECK(test::start(b, s, op) == errc::unsupported_op);
        auto e = after(b, s);
        CHECK(b.synchronize(e) == error_code());
        CHECK(b.status() == error_code());
    }
}

TEST_CASE("an op's own error is reported when the op is finished")
{
    host_backend b(host_with(host_mode::inline_));
    bound_op op;
    CHECK(b.finish(op) == error_code());
    op.status = errc::out_of_memory;
    CHECK(b.finish(op) == errc::out_of_memory);
}

TEST_CASE("each error is classified as a fault")
{
    CHECK(host_backend::classify(errc::context_lost) == fault::context_lost);
    CHECK(host_backend::classify(errc::device_lost) == fault::device_lost);
    CHECK(host_backend::classify(errc::out_of_memory) == fault::busy);
    CHECK(host_backend::classify(errc::overlap) == fault::caller);
    CHECK(host_backend::classify(boost::asio::error::eof) == fault::library);
}

TEST_SUITE_END();

} // namespace test_host_backend
