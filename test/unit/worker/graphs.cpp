#include "buffer_ref.hpp"
#include "plan/graph.hpp"
#include "plan_samples.hpp"
#include "worker/child/plan_instances.hpp"
#include "worker/protocol/plan_codec.hpp"

#include <coaccel/core/op_list.hpp>

#include <doctest/doctest.h>

namespace test_worker_graphs {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

/// Copies a part of one buffer into another.
detail::recorded_graph sample_graph()
{
    const auto from = ref<float>::from_raw(test::buffer_ref(7, 1, 100, dtype::f32));
    const auto to = ref<float>::from_raw(test::buffer_ref(7, 2, 100, dtype::f32));
    op_list ops;
    ops.add(memory::copy<float>{from.subspan(70, 10), to.subspan(3, 10)});
    return detail::record_graph(std::move(detail::op_list_access::ops(ops)), "graph 1").value();
}

decoded_plan decode_graph(const detail::plan_data& p)
{
    const test::no_kernels none;
    return decode_plan(test::encoded(p), test::sample_environment(none));
}

TEST_SUITE_BEGIN("graphs in workers");

TEST_CASE("a graph is the same on the other side")
{
    const auto g = sample_graph();
    const auto made = decode_graph(*g.plan);
    REQUIRE_MESSAGE(made.status == plan_status::complete, made.why.message());
    CHECK(made.plan.over_buffers);
    CHECK(made.plan.name == "graph 1");
    REQUIRE(made.plan.slots.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(made.plan.slots[i].kind == g.plan->slots[i].kind);
        CHECK(made.plan.slots[i].count == g.plan->slots[i].count);
        CHECK(made.plan.slots[i].offset == g.plan->slots[i].offset);
    }
    CHECK_FALSE(decode_graph(*test::sample_plan()).plan.over_buffers);
}

TEST_CASE("a graph with slots that are no buffers, or with an invalid beginning, is malformed")
{
    auto p = *test::sample_plan();
    p.over_buffers = true;
    CHECK(decode_graph(p).status == plan_status::malformed);
    for (const std::uint64_t offset : {std::uint64_t(2), std::uint64_t(4096), ~std::uint64_t(0)}) {
        p = *sample_graph().plan;
        p.slots[0].offset = offset;
        CHECK(decode_graph(p).status == plan_status::malformed);
    }
}

TEST_CASE("an instance of a graph has the refs of its runs, and refs that do not match are refused")
{
    const auto g = sample_graph();
    const auto add = [&](plan_instances& all, any_ref from, any_ref to, std::uint64_t spare) {
        return all.add(
            1, {.plan = g.plan,
                .chain = 2,
                .refs = {test::buffer_ref(7, 9, 1, dtype::u8), from, to, test::buffer_ref(7, 10, spare, dtype::u8)}});
    };
    const std::uint64_t spare = g.plan->slots[1].bytes();
    any_ref wrong_type = g.buffers[0];
    wrong_type.type = dtype::u8;
    any_ref shorter = g.buffers[1];
    --shorter.size;
    plan_instances all;
    CHECK_FALSE(add(all, wrong_type, g.buffers[1], spare));
    CHECK_FALSE(add(all, g.buffers[0], shorter, spare));
    CHECK_FALSE(add(all, g.buffers[0], g.buffers[1], spare - 1));
    REQUIRE(add(all, g.buffers[0], g.buffers[1], spare));
    const auto* loaded = all.find(1);
    REQUIRE(loaded);
    REQUIRE(loaded->run);
    const bound_op o = loaded->run->bind();
    CHECK(o.info->operands.size() == 3);
    CHECK(o.as<detail::plan_run_op>().memory.raw == loaded->memory());
    CHECK(o.as<detail::plan_run_op>().instance == 1);
    CHECK(o.as<detail::plan_run_op>().chain == 2);
    // The parent cannot release a buffer under the graph.
    CHECK(all.delay_release(g.buffers[1]));
    const auto free = all.remove(1);
    REQUIRE(free.size() == 1);
    CHECK(free[0].slot == g.buffers[1].slot);
}

TEST_SUITE_END();

} // namespace

} // namespace test_worker_graphs
