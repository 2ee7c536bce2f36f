#include "large_run.hpp"
#include "plan_samples.hpp"
#include "remote_plan_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace test_worker_remote_plan_runs {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::plan_data;
using fixture = test::remote_plan_fixture;
using test::exec;
using test::load_request;
using test::small_run;

} // namespace

TEST_SUITE_BEGIN("remote_plans");

TEST_CASE("a run is one message, and its arguments pass through the staging area")
{
    fixture f;
    const auto plan = test::sample_plan();
    const auto memory = f.load(*plan)[0];
    small_run r(memory);
    f.driver.submit(*r.request);
    const auto sent = f.take_run();
    CHECK(sent.instance == 1);
    CHECK(sent.chain == 1);
    CHECK(sent.memory == memory);
    REQUIRE(sent.inputs.size() == 1);
    REQUIRE(sent.outputs.size() == 1);
    CHECK(sent.inputs[0].where.offset == 0);
    CHECK(sent.inputs[0].where.bytes == 16);
    CHECK(sent.outputs[0].where.offset == 256);
    CHECK(std::memcmp(f.world.memory->at(sent.inputs[0].offset), r.x.data(), 16) == 0);
    CHECK_FALSE(f.has_all_memory());
    CHECK(f.silent());
    std::memset(f.world.memory->at(sent.outputs[0].offset), 8, 16);
    f.answer(sent.head.id);
    CHECK_FALSE(f.driver.outcome(*r.request));
    CHECK(r.y == std::vector<std::byte>(16, std::byte{8}));
    CHECK(f.has_all_memory());
}

TEST_CASE("a failed run delivers nothing")
{
    fixture f;
    const auto memory = f.load(*test::sample_plan())[0];
    small_run r(memory);
    f.driver.submit(*r.request);
    const auto sent = f.take_run();
    std::memset(f.world.memory->at(sent.outputs[0].offset), 8, 16);
    f.answer(sent.head.id, errc::user_exception);
    CHECK(f.driver.outcome(*r.request) == errc::user_exception);
    CHECK(r.y == std::vector<std::byte>(16));
    CHECK(f.has_all_memory());
}

TEST_CASE("an impossible run is refused here")
{
    fixture f;
    const auto memory = f.load(*test::sample_plan())[0];
    small_run large(memory, detail::largest_staged_argument + 1);
    CHECK(f.driver.outcome_of(*large.request) == errc::invalid_argument);
    auto stale = memory;
    --stale.generation;
    small_run late(stale);
    CHECK(f.driver.outcome_of(*late.request) == errc::stale_ref);

    small_run many(memory, detail::largest_staged_argument);
    detail::plan_run_op op;
    op.memory = ref<std::uint8_t>::from_raw(memory);
    const std::vector<detail::run_argument> arguments(17, many.in);
    op.inputs = arguments.data();
    op.input_count = 17;
    exec<detail::plan_run_op> too_much(op, exec_options{});
    const auto ec = f.driver.outcome_of(too_much);
    CHECK(ec == errc::invalid_argument);
    CHECK(ec.message().find("staging_bytes is 4194304") != std::string::npos);
    CHECK(f.silent());
    CHECK(f.has_all_memory());
}

TEST_CASE("a run that finds no room waits, and so do later runs of its chain and later uses of its memory")
{
    fixture f;
    const auto refs = f.load(*test::sample_plan());
    small_run first(refs[0]), second(refs[0]), elsewhere(refs[1], 16, 9);
    exec<detail::plan_unload_op> unload(detail::plan_unload_op{.instance = 1, .chain = 1}, exec_options{});
    const auto all = f.world.memory->take(f.world.memory->bytes());
    REQUIRE(all);
    f.driver.submit(*first.request);
    f.driver.submit(*second.request);
    f.driver.submit(unload);
    f.driver.context->release(refs[0]);
    CHECK(f.silent());
    f.world.memory->give_back(*all);
    const auto one = f.take_run();
    const auto two = f.take_run();
    const auto id = f.next().id;
    (void)f.take(message_type::release);
    f.answer(one.head.id);
    f.answer(two.head.id);
    f.answer(id);
    CHECK_FALSE(f.driver.outcome(*first.request));
    CHECK_FALSE(f.driver.outcome(*second.request));
    CHECK_FALSE(f.driver.outcome(unload));
    CHECK(f.has_all_memory());
}

TEST_CASE("a caller can end the wait of a run for room")
{
    fixture f;
    const auto refs = f.load(*test::sample_plan());
    small_run r(refs[0]);
    const auto all = f.world.memory->take(f.world.memory->bytes());
    f.driver.submit(*r.request);
    CHECK(f.silent());
    r.request->given_up = detail::given_up::expired;
    f.turn();
    CHECK(f.driver.outcome(*r.request) == errc::deadline_exceeded);
    f.world.memory->give_back(*all);
    CHECK(f.silent());
}

TEST_CASE("large arguments are copied before and after the run, and the request ends once")
{
    fixture f;
    constexpr std::uint64_t bytes = 600'000;
    (void)f.load(*test::sample_plan());
    const auto memory = f.one(3 * bytes);
    test::large_run r(2, 1, memory, bytes);
    small_run later(memory);
    f.driver.submit(r);
    f.driver.submit(*later.request);
    std::vector<std::uint8_t> arrived(3 * bytes);
    std::vector<message_type> order;
    const auto next = [&] {
        f.record.clear();
        f.driver.run_until([&] {
            if (f.record.empty())
                f.record = f.world.worker.take();
            return !f.record.empty();
        });
        order.push_back(static_cast<message_type>(f.record[0]));
        return order.back();
    };
    std::uint64_t written = 0;
    while (written < 2 * bytes) {
        REQUIRE(next() == message_type::submit);
        const auto& s = f.decoded();
        REQUIRE(s.ops[0].what == op_kind::write);
        std::memcpy(arrived.data() + s.ops[0].ref.offset, f.world.memory->at(s.ops[0].offset), s.ops[0].count);
        written += s.ops[0].count;
        f.answer(s.id);
    }
    CHECK(std::equal(r.in[0].begin(), r.in[0].end(), arrived.begin()));
    CHECK(std::equal(r.in[1].begin(), r.in[1].end(), arrived.begin() + bytes));
    CHECK_FALSE(f.driver.has_ended(r));
    const auto run = f.take_run();
    CHECK(run.inputs.empty());
    f.answer(run.head.id);
    std::uint64_t done = 0;
    while (done < bytes) {
        REQUIRE(next() == message_type::submit);
        const auto& s = f.decoded();
        REQUIRE(s.ops[0].what == op_kind::read);
        CHECK(s.ops[0].ref.offset == 2 * bytes + done);
        std::memset(f.world.memory->at(s.ops[0].offset), 77, s.ops[0].count);
        done += s.ops[0].count;
        CHECK_FALSE(f.driver.has_ended(r));
        f.answer(s.id);
    }
    f.driver.run_until([&] { return f.driver.has_ended(r); });
    CHECK_FALSE(f.driver.outcome(r));
    CHECK(r.out[0] == std::vector<std::uint8_t>(bytes, 77));
    // The run behind it was not sent before its last copy.
    const auto behind = f.take_run();
    CHECK(behind.inputs.size() == 1);
    f.answer(behind.head.id);
    CHECK_FALSE(f.driver.outcome(*later.request));
    CHECK(f.has_all_memory());
}

TEST_CASE("an error of a copy ends the request without a run")
{
    fixture f;
    constexpr std::uint64_t bytes = 600'000;
    (void)f.load(*test::sample_plan());
    // The second write reaches beyond the buffer.
    test::large_run r(2, 1, f.one(bytes), bytes);
    f.driver.submit(r);
    f.driver.run_until([&] {
        f.record = f.world.worker.take();
        if (!f.record.empty()) {
            REQUIRE(f.record[0] == std::byte(message_type::submit));
            const auto& s = f.decoded();
            CHECK(s.ops[0].what == op_kind::write);
            f.answer(s.id);
        }
        return f.driver.has_ended(r);
    });
    CHECK(f.driver.outcome(r) == errc::out_of_bounds);
    CHECK(f.silent());
    CHECK(f.has_all_memory());
}

TEST_CASE("a worker that ends in the middle of a run with large arguments ends it once")
{
    constexpr std::uint64_t bytes = 600'000;
    for (const int stage : {0, 1, 2, 3}) {
        CAPTURE(stage);
        fixture f;
        (void)f.load(*test::sample_plan());
        const auto memory = f.one(2 * bytes);
        test::large_run r(1, 1, memory, bytes);
        small_run small(memory);
        f.driver.submit(r);
        f.driver.submit(*small.request);
        std::uint64_t written = 0;
        while (stage > 0 && written < bytes) {
            const auto& s = f.next();
            written += s.ops[0].count;
            f.answer(s.id);
        }
        if (stage > 1) {
            const auto run = f.take_run();
            if (stage > 2)
                f.answer(run.head.id);
        }
        f.world.worker.block->replies.written = 1;
        f.expect_loss(errc::worker_corrupted);
        CHECK(f.driver.outcome(r) == errc::context_lost);
        CHECK(f.driver.outcome(*small.request) == errc::context_lost);
        f.driver.context.reset();
        CHECK(f.has_all_memory());
    }
}

TEST_CASE("a dropped context hands over a run with large arguments as one request")
{
    fixture f;
    constexpr std::uint64_t bytes = 600'000;
    (void)f.load(*test::sample_plan());
    const auto memory = f.one(2 * bytes);
    test::large_run r(1, 1, memory, bytes);
    f.driver.submit(r);
    (void)f.next();
    detail::async_op_list left;
    f.driver.context->drop(left);
    CHECK(left.pop_front() == &r);
    CHECK(left.pop_front() == nullptr);
}

TEST_CASE("a run together with other ops is refused")
{
    fixture f;
    const auto memory = f.load(*test::sample_plan())[0];
    test::large_run r(1, 1, memory, 16);
    std::swap(r.ops[0], r.ops[2]);
    CHECK(f.driver.outcome_of(r) == errc::invalid_argument);
    CHECK(f.silent());
}

TEST_SUITE_END();

} // namespace test_worker_remote_plan_runs
