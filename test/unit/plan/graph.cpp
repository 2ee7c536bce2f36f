#include "plan/graph.hpp"

#include <coaccel/core/op_list.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace test_plan_graph {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

result<recorded_graph> record(op_list ops)
{
    return record_graph(std::move(op_list_access::ops(ops)), "graph 7");
}

std::string message(const op_list& ops)
{
    const auto made = record(ops);
    return made ? std::string("no error") : made.error().message();
}

template <element T>
ref<T> buffer_ref(std::uint32_t slot, std::uint64_t size)
{
    return ref<T>::from_raw(
        {.device = 3, .generation = 2, .slot = slot, .version = 5, .size = size, .type = dtype_v<T>});
}

any_ref operand(const listed_op& o, std::size_t i)
{
    any_ref r;
    std::memcpy(&r, reinterpret_cast<const std::byte*>(o.record.op.data()) + o.info->operands[i].offset, sizeof(r));
    return r;
}

const auto a = buffer_ref<float>(10, 1000);
const auto b = buffer_ref<float>(11, 1000);
const auto wide = buffer_ref<double>(12, 1000);

TEST_SUITE_BEGIN("graph");

TEST_CASE("each buffer is one slot: a constant if it is only read, else a state")
{
    const auto made = record(op_list()
                                 .add(memory::copy<float>{a.subspan(200, 10), b.subspan(100, 10)})
                                 .add(memory::copy<float>{a.subspan(130, 10), b.subspan(500, 10)})
                                 .add(memory::fill<double>{wide, 1}))
                          .value();
    const plan_data& p = *made.plan;
    CHECK(p.over_buffers);
    CHECK(p.name == "graph 7");
    CHECK(p.instance_bytes == 0);
    REQUIRE(p.slots.size() == 3);
    REQUIRE(p.constants.size() == 1);
    REQUIRE(p.states.size() == 2);
    REQUIRE(made.buffers.size() == 3);
    // From a multiple of 256 bytes up to the last element that is used.
    CHECK(p.slots[0].name == "src of op 1 (memory.copy<f32>)");
    CHECK(p.slots[0].kind == slot_kind::constant);
    CHECK(p.slots[0].count == 210 - 128);
    CHECK(p.slots[0].offset == 2 * sizeof(float));
    CHECK(made.buffers[0] == a.subspan(128, 82).raw());
    CHECK(p.slots[1].kind == slot_kind::state);
    CHECK(made.buffers[1] == b.subspan(64, 446).raw());
    CHECK(made.buffers[2] == wide.raw());
    CHECK(operand(p.ops[0], 0) ==
          any_ref{.device = plan_device, .slot = 0, .offset = 72, .size = 10, .type = dtype::f32});
    CHECK(operand(p.ops[0], 1) ==
          any_ref{.device = plan_device, .slot = 1, .offset = 36, .size = 10, .type = dtype::f32});
    CHECK(operand(p.ops[1], 0).offset == 2);
    CHECK(operand(p.ops[2], 0).slot == 2);
}

TEST_CASE("the operands of a load and of a run are the buffers")
{
    const auto made = record(op_list().add(memory::copy<float>{a.subspan(130, 10), b.subspan(1, 10)})).value();
    const plan_data& p = *made.plan;
    const op_info load = make_load_info(p);
    CHECK(load.name == "graph 7");
    REQUIRE(load.operands.size() == 4);
    CHECK(load.operands[1].type == dtype::f32);
    CHECK(load.operands[1].mode == access::read);
    // Only the copy on which the ops run for the first time is written.
    CHECK(load.operands[2].type == dtype::f32);
    CHECK(load.operands[2].mode == access::read);
    CHECK(load.operands[3].type == dtype::u8);
    CHECK(load.operands[3].mode == access::read_write);

    graph_run run(p, {.instance = 4, .chain = 2}, made.buffers);
    const bound_op o = run.bind();
    CHECK(o.info->id == info_of<plan_run_op>().id);
    CHECK(o.info->name == "graph 7");
    CHECK(o.as<plan_run_op>().instance == 4);
    CHECK(o.info->state(o.op) == 2);
    REQUIRE(o.info->operands.size() == 3);
    const auto ref_at = [&](std::size_t i) {
        any_ref r;
        std::memcpy(&r, static_cast<const std::byte*>(o.op) + o.info->operands[i].offset, sizeof(r));
        return r;
    };
    // Exactly what the ops use, so that neighbours need not wait.
    CHECK(ref_at(1) == a.subspan(130, 10).raw());
    CHECK(o.info->operands[1].mode == access::read);
    CHECK(ref_at(2) == b.subspan(1, 10).raw());
    CHECK(o.info->operands[2].mode == access::read_write);
}

TEST_CASE("a graph has generators of its own")
{
    const auto g = rand::make_generator({.seed = 3});
    const auto made = record(op_list().add(rand::uniform<float>{a, g}).add(rand::uniform<float>{b, g})).value();
    const auto state = [](const listed_op& o) { return o.info->state(o.record.op.data()); };
    CHECK(state(made.plan->ops[0]) != g.id());
    CHECK(state(made.plan->ops[0]) == state(made.plan->ops[1]));
}

TEST_CASE("errors name the graph, the op and the field")
{
    any_ref elsewhere = b.raw();
    elsewhere.device = 4;
    any_ref older = b.raw();
    older.generation = 1;
    any_ref endless = b.raw();
    endless.offset = 5;
    endless.size = any_ref::invalid_offset - 4;
    const auto as_floats = [](const any_ref& r) { return ref<float>::from_raw(r); };
    const auto fill = [](const ref<float>& r) { return memory::fill<float>{r, 1}; };
    CHECK(message({}) == "graph 7: it has no ops");
    CHECK(message(op_list().add(fill(a)).add(fill({}))) == "graph 7: op 2 (memory.fill<f32>): dst names no buffer");
    CHECK(message(op_list().add(fill(as_floats(wide.raw())))) ==
          "graph 7: op 1 (memory.fill<f32>): dst takes f32, given a ref of f64");
    CHECK(message(op_list().add(fill(a.subspan(999, 2)))) ==
          "graph 7: op 1 (memory.fill<f32>): dst is a subspan of 2 elements outside its ref");
    CHECK(record(op_list().add(fill(as_floats(endless)))).error() == errc::out_of_bounds);
    CHECK(message(op_list().add(fill(a.subspan(5, 0)))) == "graph 7: op 1 (memory.fill<f32>): dst has 0 elements");
    CHECK(record(op_list().add(fill(a)).add(fill(as_floats(elsewhere)))).error() == errc::wrong_device);
    CHECK(record(op_list().add(fill(a)).add(fill(as_floats(older)))).error() == errc::stale_ref);
    CHECK(message(op_list().add(memory::copy<float>{a.subspan(0, 5), a.subspan(4, 5)})) ==
          "graph 7: op 1 (memory.copy<f32>): src and dst overlap");
    CHECK(message(op_list().add(blas::dot<float>{.x = a, .y = b, .n = 5})) ==
          "graph 7: op 1 (blas.dot<f32>): its reply is its only effect, but a graph returns no replies; use "
          "store_reply");
    CHECK(record(op_list().add(blas::axpy<float>{.x = a, .y = b, .n = 0})).error() == errc::invalid_argument);
    any_ref also = a.raw();
    also.type = dtype::f64;
    CHECK(message(op_list().add(fill(a)).add(memory::fill<double>{ref<double>::from_raw(also), 1})) ==
          "graph 7: op 2 (memory.fill<f64>): dst takes f64, but dst of op 1 (memory.fill<f32>) uses its buffer as f32");
}

TEST_SUITE_END();

} // namespace

} // namespace test_plan_graph
