#include "jit/image.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/ops/prim.hpp>
#include <coaccel/ops/rand.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <complex>
#include <string>
#include <vector>

namespace test_plan_text {

namespace {

using namespace coaccel;

enum class mode : std::int16_t { fast = -7 };

struct pair {
    std::uint8_t a;
    std::uint8_t b;
};

/// Replaces ids, which tests of their own compare.
std::string without_ids(std::string text, const plan_description& p)
{
    const auto& data = *detail::plan_access::data(p);
    const auto replace = [&](const content_id& id, const char* by) {
        for (auto at = text.find(to_string(id)); at != std::string::npos; at = text.find(to_string(id)))
            text.replace(at, 32, by);
    };
    replace(p.id(), "ID");
    for (const auto& c : data.constant_contents)
        replace(c.id, "CONSTANT");
    for (const auto& c : data.state_contents)
        replace(c.id, "STATE");
    return text;
}

template <op Op>
std::string text_of_op(const Op& o, plan_builder& b)
{
    b.add(o);
    const auto made = b.finish();
    REQUIRE_MESSAGE(made.has_value(), made.error().message());
    const auto text = made.value().to_text();
    const auto at = text.rfind("\nop ") + 1;
    return text.substr(at, text.find('\n', at) - at);
}

} // namespace

TEST_SUITE_BEGIN("plan text");

TEST_CASE("the text has a line for each slot and each op")
{
    plan_builder b("classify");
    const auto x = b.input<float>(4);
    const auto w = b.constant<float>(std::vector<float>(8, 1), "weights");
    const auto h = b.scratch<float>(3);
    const auto s = b.state<float>(2);
    const auto t = b.state<float>(std::vector<float>(1, 1));
    const auto y = b.output<float>(2);
    b.add(blas::gemv<float>{.a = w, .x = x, .y = h.first(2), .m = 2, .n = 4, .alpha = 0.5f});
    b.add(blas::axpy<float>{.x = h.first(2), .y = s, .n = 2, .incx = -1});
    b.add(store_reply(blas::dot<float>{.x = s, .y = s, .n = 2}, t));
    b.add(memory::copy<float>{.src = s, .dst = y});
    const auto p = b.finish().value();
    CHECK(without_ids(p.to_text(), p) ==
          "plan classify, id ID\n"
          "input1: input of 4 f32, at byte 0\n"
          "weights: constant of 8 f32, content CONSTANT\n"
          "scratch1: scratch of 3 f32, at byte 512\n"
          "state1: state of 2 f32, starts with zeros\n"
          "state2: state of 1 f32, starts with STATE\n"
          "output1: output of 2 f32, at byte 256\n"
          "op 1: blas.gemv<f32>: a = weights [0, 8), x = input1 [0, 4), y = scratch1 [0, 2), m = 2, n = 4, "
          "alpha = 0.5, beta = 0, trans = no, lda = 0, incx = 1, incy = 1\n"
          "op 2: blas.axpy<f32>: x = scratch1 [0, 2), y = state1 [0, 2), n = 2, alpha = 1, incx = -1, incy = 1\n"
          "op 3: blas.dot<f32> stored: x = state1 [0, 2), y = state1 [0, 2), n = 2, incx = 1, incy = 1, "
          "dst = state2 [0, 1)\n"
          "op 4: memory.copy<f32>: src = state1 [0, 2), dst = output1 [0, 2)\n"
          "not repeatable: it changes memory that later runs use\n");
}

TEST_CASE("the text has the rule of a durable state")
{
    plan_builder b("p");
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail})
        b.add(memory::fill<float>{b.state<float>(1, durable{rule}), 1.0f});
    const auto text = b.finish().value().to_text();
    CHECK(text.find("state1: state of 1 f32, starts with zeros, durable, if suspect: keep\n") != std::string::npos);
    CHECK(text.find("state2: state of 1 f32, starts with zeros, durable, if suspect: reset\n") != std::string::npos);
    CHECK(text.find("state3: state of 1 f32, starts with zeros, durable, if suspect: fail\n") != std::string::npos);
}

TEST_CASE("the text says whether runs can be repeated, and why not")
{
    const auto last_line = [](const plan_builder& b) {
        auto text = b.finish().value().to_text();
        text.pop_back();
        return text.substr(text.rfind('\n') + 1);
    };
    plan_builder b;
    const auto x = b.input<float>(2);
    const auto y = b.output<float>(2);
    const auto z = b.scratch<float>(1);
    b.add(memory::copy<float>{.src = x, .dst = y});
    b.add(store_reply(blas::dot<float>{.x = x, .y = y, .n = 2}, z));
    CHECK(last_line(b) == "repeatable");
    CHECK(b.finish().value().repeatable());
    b.add(pure(plugin::call("twice", inout(y))));
    CHECK(last_line(b) == "repeatable");
    b.add(plugin::call("twice", inout(y)));
    CHECK(last_line(b) == "not repeatable: op 4 (plugin.call) is not known to be pure");
    CHECK_FALSE(b.finish().value().repeatable());
    CHECK_FALSE(plan_description().repeatable());

    plan_builder draws;
    draws.add(rand::uniform<float>{.dst = draws.output<float>(2), .from = rand::make_generator()});
    CHECK(last_line(draws) == "not repeatable: op 1 (rand.uniform<f32>) is not known to be pure");
}

TEST_CASE("the text and the graph say which ops cannot be captured")
{
    plan_builder b;
    const auto s = b.state<float>(4);
    b.add(memory::fill<float>{.dst = s});
    const auto all = b.finish().value();
    CHECK(all.capturable());
    CHECK(all.to_text().find("captured") == std::string::npos);
    CHECK(all.to_graphviz().find("dashed") == std::string::npos);

    b.add(memory::prefetch<float>{.target = s, .to = memory::place::host});
    const auto some = b.finish().value();
    CHECK_FALSE(some.capturable());
    const std::string text = some.to_text();
    CHECK(text.find("value = 0\n") != std::string::npos);
    CHECK(text.find("to = host; cannot be captured: it is not only work on a stream\n") != std::string::npos);
    const std::string graph = some.to_graphviz();
    CHECK(graph.find("op1 [shape=ellipse, label=") != std::string::npos);
    CHECK(graph.find("op2 [shape=ellipse, style=dashed, label=") != std::string::npos);

    CHECK_FALSE(plan_description().capturable());
}

TEST_CASE("a product of 16-bit elements can be captured with every factor")
{
    using gemm = blas::gemm<half>;
    for (const bool parameter : {false, true}) {
        plan_builder b;
        const gemm product{.a = b.constant<half>(std::vector<half>(1)),
                           .b = b.input<half>(1),
                           .c = b.output<half>(1),
                           .m = 1,
                           .n = 1,
                           .k = 1,
                           .alpha = 0};
        if (parameter)
            b.add(product, bind(&gemm::alpha, b.parameter<float>()));
        else
            b.add(product);
        CHECK(b.finish().value().capturable());
    }
}

TEST_CASE("values are readable")
{
    const std::string no_stream = "cannot be captured: it is not only work on a stream";
    plan_builder b;
    CHECK(text_of_op(memory::fill<double>{.dst = b.output<double>(1), .value = 0.1}, b) ==
          "op 1: memory.fill<f64>: dst = output1 [0, 1), value = 0.1");
    CHECK(text_of_op(memory::fill<half>{.dst = b.output<half>(1), .value = half(1.5f)}, b) ==
          "op 2: memory.fill<f16>: dst = output2 [0, 1), value = 1.5");
    CHECK(text_of_op(memory::fill<std::int8_t>{.dst = b.output<std::int8_t>(1), .value = -5}, b) ==
          "op 3: memory.fill<i8>: dst = output3 [0, 1), value = -5");
    CHECK(text_of_op(memory::fill<std::uint64_t>{.dst = b.output<std::uint64_t>(1), .value = ~std::uint64_t(0)}, b) ==
          "op 4: memory.fill<u64>: dst = output4 [0, 1), value = 18446744073709551615");
    CHECK(text_of_op(memory::fill<std::complex<float>>{.dst = b.output<std::complex<float>>(1), .value = {1.5f, -2}},
                     b) == "op 5: memory.fill<c64>: dst = output5 [0, 1), value = (1.5, -2)");
    CHECK(text_of_op(memory::advise<float>{.target = b.state<float>(1), .what = memory::advice::prefer_host}, b) ==
          "op 6: memory.advise<f32>: target = state1 [0, 1), what = prefer_host; " + no_stream);
    CHECK(text_of_op(memory::prefetch<float>{.target = b.state<float>(1), .to = memory::place::host}, b) ==
          "op 7: memory.prefetch<f32>: target = state2 [0, 1), to = host; " + no_stream);
    CHECK(text_of_op(memory::trim{}, b) == "op 8: memory.trim; " + no_stream);
}

TEST_CASE("generators have their options, and numbers by which they differ")
{
    plan_builder b;
    const auto one = rand::make_generator({.seed = 3});
    const auto two = rand::make_generator({.algorithm = rand::algorithm::xorwow, .offset = 9});
    const auto y = b.output<float>(3);
    const auto text = [](int op, const char* range, const char* generator) {
        return "op " + std::to_string(op) + ": rand.uniform<f32>: dst = output1 " + range + ", from = " + generator +
               "; cannot be captured: it uses a state of the host";
    };
    b.add(memory::fill<float>{.dst = y});
    const char* const first =
        "generator 1 (algorithm = philox, seed = 3, offset = 0, ordering = standard, dimensions = 1)";
    CHECK(text_of_op(rand::uniform<float>{.dst = y.first(1), .from = one}, b) == text(2, "[0, 1)", first));
    CHECK(text_of_op(rand::uniform<float>{.dst = y.subspan(1, 1), .from = two}, b) ==
          text(3, "[1, 2)",
               "generator 2 (algorithm = xorwow, seed = 0, offset = 9, ordering = standard, dimensions = 1)"));
    CHECK(text_of_op(rand::uniform<float>{.dst = y.subspan(2, 1), .from = one}, b) == text(4, "[2, 3)", first));
}

TEST_CASE("launches and calls have their arguments")
{
    const std::string unknown = "cannot be captured: it calls a function of other code";
    plan_builder b;
    const auto k = jit::make_kernel(jit::compile_options("scale"), {"scale", "code", {}}).value();
    CHECK(text_of_op(jit::launch(k, {.grid = {3, 2}, .block = {64}, .shared_bytes = 16}, in(b.input<float>(4)),
                                 out(b.output<float>(4)), 2.5f, true, mode::fast, pair{1, 0xab}, 'a'),
                     b) ==
          "op 1: jit.launch: kernel = scale, grid = 3 x 2 x 1, block = 64 x 1 x 1, shared_bytes = 16, "
          "argument 1 = input1 [0, 4), argument 2 = output1 [0, 4), argument 3 = 2.5, argument 4 = true, "
          "argument 5 = -7, argument 6 = bytes 01 ab, argument 7 = 97");
    const auto s = b.state<double>(4);
    CHECK(text_of_op(plugin::call("blur", s.size(), inout(s)), b) ==
          "op 2: plugin.call: function = blur, argument 1 = 4, argument 2 = state1 [0, 4); " + unknown);
    CHECK(text_of_op(plugin::call("tick"), b) == "op 3: plugin.call: function = tick; " + unknown);
    CHECK(text_of_op(plugin::call("tick", plugin::version{2}, 5), b) ==
          "op 4: plugin.call: function = tick, version = 2, argument 1 = 5; " + unknown);
}

TEST_CASE("the layout of an elementwise op is its shape, with strides if an operand is not packed")
{
    using binary = prim::binary<float>;
    using prim::layout;
    const auto text_of = [](const layout<3>& shape, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
        plan_builder plan;
        const auto text = text_of_op(
            binary{.a = plan.input<float>(a), .b = plan.input<float>(b), .c = plan.state<float>(c), .shape = shape},
            plan);
        return text.substr(text.find("shape = "));
    };
    CHECK(text_of({}, 6, 6, 6) == "shape = packed");
    CHECK(text_of(layout<3>::vector(6), 6, 6, 6) == "shape = 6");
    CHECK(text_of(layout<3>::packed({2, 1, 3}), 6, 6, 6) == "shape = 2 x 1 x 3");
    CHECK(text_of(layout<3>::packed({1, 1, 1, 1, 2, 3}), 6, 6, 6) == "shape = 1 x 1 x 1 x 1 x 2 x 3");
    CHECK(text_of(layout<3>::matrix(2, 3).row(1), 6, 3, 6) == "shape = 2 x 3 (strides [3, 1], [0, 1], [3, 1])");
    CHECK(text_of(layout<3>::matrix(2, 3).scalar(0), 1, 6, 6) == "shape = 2 x 3 (strides [0, 0], [3, 1], [3, 1])");
    CHECK(text_of(layout<3>::matrix(2, 3).operand(2, {4, 1}), 6, 6, 7) ==
          "shape = 2 x 3 (strides [3, 1], [3, 1], [4, 1])");
    // The stride of a dimension with one element has no effect.
    CHECK(text_of(layout<3>::matrix(1, 3).row(1), 3, 3, 3) == "shape = 1 x 3");
}

TEST_CASE("dimensions without a layout are a list")
{
    plan_builder b;
    const auto text = text_of_op(
        prim::transpose<float>{.x = b.input<float>(6), .y = b.state<float>(6), .rank = 2, .dims = {2, 3}}, b);
    CHECK(text.ends_with("rank = 2, dims = [2, 3, 0, 0, 0, 0], order = [1, 0, 0, 0, 0, 0]"));
}

TEST_CASE("names with control characters stay on their line")
{
    plan_builder b("a\nb");
    b.add(memory::fill<float>{.dst = b.output<float>(1, "c\nd")});
    const auto p = b.finish().value();
    CHECK(without_ids(p.to_text(), p) == "plan a\\x0ab, id ID\n"
                                         "c\\x0ad: output of 1 f32, at byte 0\n"
                                         "op 1: memory.fill<f32>: dst = c\\x0ad [0, 1), value = 0\n"
                                         "repeatable\n");
}

TEST_CASE("the graph has boxes for slots, ellipses for ops and edges for uses")
{
    plan_builder b("classify");
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    const auto s = b.state<float>(4);
    const auto k = jit::make_kernel(jit::compile_options("ns::f<int>"), {"f", "code", {}}).value();
    b.add(blas::copy<float>{.x = x, .y = y, .n = 4});
    b.add(blas::axpy<float>{.x = x, .y = y, .n = 4});
    b.add(jit::launch(k, {}, inout(s)));
    b.add(plugin::call("tick", in(s)));
    CHECK(b.finish().value().to_graphviz() ==
          "digraph \"classify\" {\n"
          "    slot0 [shape=box, label=\"input1\\ninput of 4 f32\"];\n"
          "    slot1 [shape=box, label=\"output1\\noutput of 4 f32\"];\n"
          "    slot2 [shape=box, label=\"state1\\nstate of 4 f32\"];\n"
          "    op1 [shape=ellipse, label=\"1: blas.copy<f32>\"];\n"
          "    slot0 -> op1 [label=\"x\"];\n"
          "    op1 -> slot1 [label=\"y\"];\n"
          "    op2 [shape=ellipse, label=\"2: blas.axpy<f32>\"];\n"
          "    slot0 -> op2 [label=\"x\"];\n"
          "    slot1 -> op2 [label=\"y\"];\n"
          "    op2 -> slot1 [label=\"y\"];\n"
          "    op3 [shape=ellipse, label=\"3: jit.launch\\nns::f<int>\"];\n"
          "    slot2 -> op3 [label=\"argument 1\"];\n"
          "    op3 -> slot2 [label=\"argument 1\"];\n"
          "    op4 [shape=ellipse, style=dashed, label=\"4: plugin.call\\ntick\"];\n"
          "    slot2 -> op4 [label=\"argument 1\"];\n"
          "}\n");
}

TEST_CASE("labels of the graph are escaped")
{
    plan_builder b;
    b.add(memory::fill<float>{.dst = b.output<float>(1, "a\"b\\c\nd")});
    CHECK(b.finish().value().to_graphviz() ==
          "digraph \"plan\" {\n"
          "    slot0 [shape=box, label=\"a\\\"b\\\\c\\\\x0ad\\noutput of 1 f32\"];\n"
          "    op1 [shape=ellipse, label=\"1: memory.fill<f32>\"];\n"
          "    op1 -> slot0 [label=\"dst\"];\n"
          "}\n");
}

TEST_SUITE_END();

} // namespace test_plan_text
