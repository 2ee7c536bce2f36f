#include "worker/protocol/plan_frames.hpp"

#include "buffer_ref.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace test_worker_plan_frames {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

any_ref bytes_ref(std::uint32_t slot, std::uint64_t size)
{
    return test::buffer_ref(7, slot, size, dtype::u8);
}

template <class Frame>
bool read(const encoder& out, message_type what, bool (*get)(decoder&, Frame&), Frame& frame, std::size_t drop = 0)
{
    decoder in(out.record().first(out.record().size() - drop));
    message_type got{};
    return in.get(got, message_type::adopt, message_type::lost) && got == what && get(in, frame);
}

load_frame sample_load()
{
    load_frame f;
    f.head = {.id = 5, .how = {.priority = priority::high, .lane = 2}, .injected_fault = injected_fault::hang};
    f.plan = 3;
    f.instance = 11;
    f.chain = 4;
    f.refs = {bytes_ref(1, 1024), bytes_ref(9, 16)};
    return f;
}

run_frame sample_run()
{
    run_frame f;
    f.head.id = 6;
    f.memory = bytes_ref(1, 1024);
    f.instance = 11;
    f.chain = 4;
    f.inputs = {{{0, 16}, 4096}, {{256, 8}, 8192}};
    f.outputs = {{{512, 4}, 64}};
    return f;
}

} // namespace

TEST_SUITE_BEGIN("plan_frames");

TEST_CASE("a part of a plan is decoded to what was encoded")
{
    const std::vector<std::byte> part(100, std::byte{3});
    encoder out;
    put_plan(out, {.number = 8, .total = 300, .offset = 200, .part = part});
    plan_frame got;
    REQUIRE(read(out, message_type::plan, get_plan, got));
    CHECK(got.number == 8);
    CHECK(got.total == 300);
    CHECK(got.offset == 200);
    CHECK(std::ranges::equal(got.part, part));
    CHECK_FALSE(read(out, message_type::plan, get_plan, got, 1));
}

TEST_CASE("a part outside its plan or a plan of an impossible size is refused")
{
    const std::vector<std::byte> part(100);
    const auto sound = [&](std::uint64_t total, std::uint64_t offset) {
        encoder out;
        plan_frame got;
        put_plan(out, {.number = 8, .total = total, .offset = offset, .part = part});
        return read(out, message_type::plan, get_plan, got);
    };
    CHECK(sound(100, 0));
    CHECK_FALSE(sound(99, 0));
    CHECK_FALSE(sound(100, 1));
    CHECK_FALSE(sound(100, ~std::uint64_t(0)));
    CHECK_FALSE(sound(plan_limits{}.bytes_each + 1, 0));
}

TEST_CASE("a load is decoded to what was encoded")
{
    const load_frame f = sample_load();
    encoder out;
    put_load(out, f);
    load_frame got;
    REQUIRE(read(out, message_type::load, get_load, got));
    CHECK(got.head.id == 5);
    CHECK(got.head.how.lane == 2);
    CHECK(got.head.how.priority == priority::high);
    CHECK(got.head.injected_fault == injected_fault::hang);
    CHECK(got.plan == 3);
    CHECK(got.instance == 11);
    CHECK(got.chain == 4);
    CHECK(got.refs == f.refs);
    for (std::size_t n = 1; n < out.record().size(); ++n)
        REQUIRE_FALSE(read(out, message_type::load, get_load, got, n));
    out.put(std::uint8_t(0));
    CHECK_FALSE(read(out, message_type::load, get_load, got));
}

TEST_CASE("a load without refs, or with refs to the results of its own request, is refused")
{
    load_frame f = sample_load(), got;
    f.refs.clear();
    encoder out;
    put_load(out, f);
    CHECK_FALSE(read(out, message_type::load, get_load, got));
    f = sample_load();
    f.refs[0].device = made_here;
    out.clear();
    put_load(out, f);
    CHECK_FALSE(read(out, message_type::load, get_load, got));
}

TEST_CASE("a run is decoded to what was encoded")
{
    const run_frame f = sample_run();
    encoder out;
    put_run(out, f);
    run_frame got;
    REQUIRE(read(out, message_type::run, get_run, got));
    CHECK(got.head.id == 6);
    CHECK(got.memory == f.memory);
    CHECK(got.instance == 11);
    CHECK(got.chain == 4);
    REQUIRE(got.inputs.size() == 2);
    CHECK(got.inputs[1].where.offset == 256);
    CHECK(got.inputs[1].where.bytes == 8);
    CHECK(got.inputs[1].offset == 8192);
    REQUIRE(got.outputs.size() == 1);
    CHECK(got.outputs[0].where.offset == 512);
    for (std::size_t n = 1; n < out.record().size(); ++n)
        REQUIRE_FALSE(read(out, message_type::run, get_run, got, n));
}

TEST_CASE("a run with an empty or a large staged argument is refused")
{
    for (const std::uint64_t bytes : {std::uint64_t(0), detail::largest_staged_argument + 1, ~std::uint64_t(0)}) {
        run_frame f = sample_run(), got;
        f.outputs[0].where.bytes = bytes;
        encoder out;
        put_run(out, f);
        CHECK_FALSE(read(out, message_type::run, get_run, got));
    }
    run_frame f = sample_run(), got;
    f.memory.device = made_here;
    encoder out;
    put_run(out, f);
    CHECK_FALSE(read(out, message_type::run, get_run, got));
}

TEST_SUITE_END();

} // namespace test_worker_plan_frames
