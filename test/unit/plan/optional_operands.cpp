#include "plan/file/tree.hpp"
#include "plan/graph.hpp"
#include "plan/plan_parts.hpp"
#include "support/plan_files.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/core/op_list.hpp>
#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

// Plans with ops that have optional operands, with and without a buffer.
namespace test_plan_optional_operands {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using matmul = blas::matmul<float>;
using batched = blas::gemm_batched<float>;
using quantized = blas::matmul<float8_e4m3, float8_e4m3>;

const plan_data& data_of(const plan_description& p)
{
    return *plan_access::data(p);
}

any_ref operand_of(const listed_op& o, std::string_view name)
{
    const auto found = std::ranges::find(o.info->operands, name, &op_field::name);
    REQUIRE(found != o.info->operands.end());
    return ref_of(o, *found);
}

plan_description finish(const plan_builder& b)
{
    auto made = b.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    return std::move(made).value();
}

/// Adds y = x w, a product of matrices with two rows and columns, and `with` it.
template <class Change>
void add_product(plan_builder& b, Change with)
{
    const auto x = b.input<float>(4, "x");
    const auto w = b.constant<float>(std::vector<float>{1, 2, 3, 4}, "w");
    matmul op{.a = x, .b = w, .d = b.output<float>(4, "y"), .m = 2, .n = 2, .k = 2};
    with(op);
    b.add(op);
}

/// What may be given for the optional operands, each in the same slots.
enum class given { nothing, bias, c, both };

plan_description product_plan(given what)
{
    plan_builder b("product");
    const auto v = b.constant<float>(std::vector<float>{5, 6, 7, 8}, "v");
    add_product(b, [&](matmul& op) {
        if (what == given::bias || what == given::both)
            op.bias = v.first(2);
        if (what == given::c || what == given::both)
            op.c = v;
    });
    return finish(b);
}

constexpr given everything[] = {given::nothing, given::bias, given::c, given::both};

} // namespace

TEST_SUITE_BEGIN("optional operands in plans");

TEST_CASE("an operand without a buffer names no slot")
{
    const auto p = product_plan(given::bias);
    REQUIRE(data_of(p).ops.size() == 1);
    const listed_op& o = data_of(p).ops[0];
    CHECK(names_slot(operand_of(o, "bias")));
    CHECK(operand_of(o, "bias").size == 2);
    CHECK(operand_of(o, "c").is_none());
    CHECK(operand_of(o, "scale_a").is_none());
    CHECK(operand_of(o, "c").type == dtype::f32);
    CHECK(data_of(p).slots.size() == 4);
    CHECK(p.repeatable());
    CHECK(p.capturable());
}

TEST_CASE("a plan is another one with each of its optional operands")
{
    std::vector<content_id> seen;
    for (const auto what : everything) {
        CHECK(product_plan(what) == product_plan(what));
        CHECK(std::ranges::count(seen, product_plan(what).id()) == 0);
        seen.push_back(product_plan(what).id());
    }
}

TEST_CASE("the text has the word none for an operand without a buffer, and the graph has no edge")
{
    const auto line = [](const plan_description& p) {
        const auto text = p.to_text();
        const auto at = text.find("op 1: ");
        return text.substr(at, text.find(", m = ", at) - at);
    };
    CHECK(line(product_plan(given::nothing)) ==
          "op 1: blas.matmul<f32 from f32>: a = x [0, 4), b = w [0, 4), d = y [0, 4), c = none, bias = none, "
          "scale_a = none, scale_b = none, scale_d = none, amax_d = none");
    CHECK(line(product_plan(given::both)) ==
          "op 1: blas.matmul<f32 from f32>: a = x [0, 4), b = w [0, 4), d = y [0, 4), c = v [0, 4), bias = v [0, 2), "
          "scale_a = none, scale_b = none, scale_d = none, amax_d = none");
    const auto edges = [](const plan_description& p) {
        std::string text = p.to_graphviz();
        return text.substr(text.find("    slot"));
    };
    const std::string slots = "    slot0 [shape=box, label=\"v\\nconstant of 4 f32\"];\n"
                              "    slot1 [shape=box, label=\"x\\ninput of 4 f32\"];\n"
                              "    slot2 [shape=box, label=\"w\\nconstant of 4 f32\"];\n"
                              "    slot3 [shape=box, label=\"y\\noutput of 4 f32\"];\n"
                              "    op1 [shape=ellipse, label=\"1: blas.matmul<f32 from f32>\"];\n"
                              "    slot1 -> op1 [label=\"a\"];\n"
                              "    slot2 -> op1 [label=\"b\"];\n"
                              "    op1 -> slot3 [label=\"d\"];\n";
    CHECK(edges(product_plan(given::nothing)) == slots + "}\n");
    CHECK(edges(product_plan(given::bias)) == slots + "    slot0 -> op1 [label=\"bias\"];\n}\n");
    CHECK(edges(product_plan(given::both)) ==
          slots + "    slot0 -> op1 [label=\"c\"];\n    slot0 -> op1 [label=\"bias\"];\n}\n");
}

TEST_CASE("memory of scratch is kept for an optional operand only if it is given")
{
    const auto build = [](bool biased) {
        plan_builder b;
        const auto x = b.input<float>(4);
        const auto first = b.scratch<float>(256), second = b.scratch<float>(256);
        b.add(memory::fill<float>{.dst = first});
        b.add(memory::fill<float>{.dst = second});
        matmul op{.a = x, .b = x, .d = b.output<float>(4), .m = 2, .n = 2, .k = 2};
        if (biased)
            op.bias = first.first(2);
        b.add(op);
        return finish(b);
    };
    // Inputs and outputs have 256 bytes each.
    CHECK(build(true).memory().instance == 512 + 2 * 1024);
    CHECK(build(false).memory().instance == 512 + 1024);
}

TEST_CASE("an empty ref is not an operand without a buffer, and is refused")
{
    const auto message = [](auto change) {
        plan_builder b("p");
        add_product(b, change);
        const auto made = b.finish();
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::invalid_argument);
        return made.error().message();
    };
    const std::string op = "plan p: op 1 (blas.matmul<f32 from f32>): ";
    CHECK(message([](matmul& o) { o.bias = ref<float>(); }) == op + "bias names no slot");
    CHECK(message([](matmul& o) { o.c = buffer<float>(); }) == op + "c names no slot");
    CHECK(message([](matmul& o) {
              o.bias = ref<float>::from_raw({.device = 3, .generation = 1, .size = 2, .type = dtype::f32});
          }) == op + "bias names a buffer of a device, but a plan has only slots");
    // Only an optional operand may be without a buffer.
    CHECK(message([](matmul& o) { o.a.raw = optional_in<float>().raw; }) == op + "a names no slot");
    CHECK(message([](matmul& o) { o.d.raw = optional_in<float>().raw; }) == op + "d names no slot");
}

TEST_CASE("an optional operand is checked as any other one")
{
    const auto error = [](auto build) {
        plan_builder b("p");
        build(b);
        const auto made = b.finish();
        return made ? std::string("no error") : made.error().message();
    };
    const std::string op = "plan p: op 1 (blas.matmul<f32 from f32>): ";
    CHECK(error([](plan_builder& b) {
              const auto other = plan_builder().input<float>(4);
              add_product(b, [&](matmul& o) { o.c = other; });
          }) == op + "c names a slot of another builder");
    CHECK(error([](plan_builder& b) {
              const auto wide = b.input<double>(4, "wide");
              add_product(b, [&](matmul& o) { o.bias.raw = wide.raw(); });
          }) == op + "bias takes f32, wide holds f64");
    CHECK(error([](plan_builder& b) {
              const auto h = b.scratch<float>(4);
              add_product(b, [&](matmul& o) { o.c = h; });
          }) == op + "c reads scratch1 [0, 4), which no earlier op has written");
    CHECK(error([](plan_builder& b) { add_product(b, [](matmul& o) { o.c.raw = o.d.raw; }); }) ==
          op + "d and c overlap in y [0, 4)");
    CHECK(error([](plan_builder& b) {
              const auto v = b.input<float>(1);
              add_product(b, [&](matmul& o) { o.bias = v; });
          }) == op + "bias has 1 elements, needs 2");
    const std::string keeps = "d is not completely overwritten, so it keeps or adds to y [0, 4), which no earlier op "
                              "has written";
    CHECK(error([](plan_builder& b) { add_product(b, [](matmul& o) { o.beta = 1; }); }) == op + keeps);
    CHECK(error([](plan_builder& b) {
              const auto v = b.input<float>(4);
              add_product(b, [&](matmul& o) { o.beta = 1, o.c = v; });
          }) == "no error");
}

TEST_CASE("with beta as a parameter, the previous result is read unless there is a C")
{
    for (const bool own_c : {false, true}) {
        plan_builder b("p");
        const auto x = b.input<float>(4);
        const auto beta = b.parameter<float>();
        matmul op{.a = x, .b = x, .d = b.output<float>(4), .m = 2, .n = 2, .k = 2};
        if (own_c)
            op.c = b.input<float>(4);
        b.add(op, bind(&matmul::beta, beta));
        CHECK(bool(b.finish()) == own_c);
    }
}

TEST_CASE("an optional operand that is written counts as written")
{
    const auto build = [](bool with_amax) {
        plan_builder b("p");
        const auto x = b.input<float8_e4m3>(256);
        const auto most = b.scratch<float>(1), copy = b.output<float>(1);
        quantized op{.a = x,
                     .b = x,
                     .d = b.output<float8_e4m3>(256),
                     .m = 16,
                     .n = 16,
                     .k = 16,
                     .trans_a = blas::transpose::yes};
        if (with_amax)
            op.amax_d = most;
        b.add(op);
        b.add(memory::copy<float>{most, copy});
        return b.finish();
    };
    CHECK(build(true));
    CHECK(build(false).error().message() ==
          "plan p: op 2 (memory.copy<f32>): src reads scratch1 [0, 1), which no earlier op has written");
    plan_builder b("p");
    const auto x = b.input<float8_e4m3>(256);
    quantized op{.a = x,
                 .b = x,
                 .d = b.output<float8_e4m3>(256),
                 .amax_d = b.constant<float>(std::vector<float>{0}, "w"),
                 .m = 16,
                 .n = 16,
                 .k = 16,
                 .trans_a = blas::transpose::yes};
    b.add(op);
    CHECK(b.finish().error().message() ==
          "plan p: op 1 (blas.matmul<f8_e4m3 from f8_e4m3>): amax_d writes w, which is a constant");
}

TEST_CASE("a plan with optional operands is saved and loaded")
{
    const test::temporary_folder folder;
    for (const auto what : everything) {
        const auto plan = product_plan(what);
        const auto path = folder / "product.plan";
        REQUIRE(plan.save(path));
        const auto loaded = plan_description::load(path);
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        CHECK(loaded.value() == plan);
        CHECK(loaded.value().to_text() == plan.to_text());
        CHECK(loaded.value().to_graphviz() == plan.to_graphviz());
        for (const op_field& f : data_of(plan).ops[0].info->operands)
            CHECK(ref_of(data_of(loaded.value()).ops[0], f).is_none() == ref_of(data_of(plan).ops[0], f).is_none());
    }
}

TEST_CASE("an optional operand that a file does not contain has no buffer, so that files of older versions are read")
{
    // Without constants, whose contents would move.
    const auto plan = [] {
        plan_builder b;
        const auto x = b.input<float>(4), bias = b.input<float>(2);
        b.add(matmul{.a = x, .b = x, .d = b.output<float>(4), .bias = bias, .m = 2, .n = 2, .k = 2});
        return finish(b);
    }();
    auto file = test::file_of(plan);
    // Removes the record "scale_a", which begins with its kind and the length of its name.
    const auto first = test::find_in_description(file, "scale_a") - 3;
    const auto last = test::find_in_description(file, "scale_b") - 3;
    REQUIRE(last < file.size());
    file.erase(file.begin() + long(first), file.begin() + long(last));
    auto h = test::header_of(file);
    h.description_bytes -= last - first;
    std::memcpy(file.data(), &h, sizeof(h));
    test::seal(file);
    const auto made = test::read_file(file);
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made.value() == plan);
}

TEST_CASE("an operand of a file with a part of its slot, or a required one without a slot, is refused")
{
    using test::number;
    struct replacement {
        const char* name;
        std::string what, with;
        std::string message;
    };
    // `offset` of a slot is found in the records of slots too, so the replacements begin with the number of the slot.
    const std::string first_slot = number("slot", std::uint32_t(1)), bias_slot = number("slot", std::uint32_t(0));
    const replacement all[] = {
        {"a required operand without a slot", first_slot, number("slit", std::uint32_t(1)), "slot is missing"},
        {"an optional operand with a part of a slot", bias_slot, number("slit", std::uint32_t(0)),
         "slit is unknown or repeated"},
        {"an optional operand in a slot that there is not", bias_slot, number("slot", std::uint32_t(9)),
         "bias names slot 9, the plan has 4"},
    };
    for (const auto& r : all) {
        INFO(std::string(r.name));
        auto file = test::file_of(product_plan(given::bias));
        REQUIRE(test::replace(file, r.what, r.with));
        const auto made = test::read_file(file);
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::file_invalid);
        CHECK(made.error().message().find(r.message) != std::string::npos);
    }
}

TEST_CASE("plans of a set have common slots as optional operands, or none")
{
    plan_set_builder set("layers");
    const auto bias = set.constant<float>(std::vector<float>{1, 2}, "bias");
    const auto sums = set.state<float>(4, "sums");
    for (const char* name : {"plain", "biased", "adding"}) {
        plan_builder& b = set.plan(name);
        add_product(b, [&](matmul& op) {
            if (name[0] != 'p')
                op.bias = bias;
            if (name[0] == 'a')
                op.c = sums, op.beta = 1;
        });
        if (name[0] == 'p')
            b.add(memory::fill<float>{.dst = sums});
    }
    const auto made = set.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    const auto product_of = [&](const char* name) -> const listed_op& { return data_of(made.value()[name]).ops[0]; };
    CHECK(operand_of(product_of("plain"), "bias").is_none());
    CHECK(names_slot(operand_of(product_of("biased"), "bias")));
    CHECK(operand_of(product_of("biased"), "c").is_none());
    CHECK(names_slot(operand_of(product_of("adding"), "c")));
    CHECK(data_of(made.value()["plain"]).constants.size() == 1);
    CHECK(data_of(made.value()["biased"]).constants.size() == 2);
    CHECK(plan_set_access::data(made.value())->users == std::vector<std::uint32_t>{2});
    const auto loaded = test::read_set_file(test::file_of(made.value()));
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    CHECK(loaded.value() == made.value());
    CHECK(loaded.value().to_text() == made.value().to_text());
    CHECK(loaded.value().to_graphviz() == made.value().to_graphviz());
}

TEST_CASE("a graph over existing buffers has no slot for an operand without a buffer")
{
    const auto buffer_ref = [](std::uint32_t slot, std::uint64_t size) {
        return ref<float>::from_raw(
            {.device = 3, .generation = 2, .slot = slot, .version = 5, .size = size, .type = dtype::f32});
    };
    const auto record = [](const matmul& op) {
        op_list ops;
        ops.add(op);
        return record_graph(std::move(op_list_access::ops(ops)), "graph 7");
    };
    matmul op{.a = buffer_ref(10, 4), .b = buffer_ref(11, 4), .d = buffer_ref(12, 4), .m = 2, .n = 2, .k = 2};
    const auto plain = record(op);
    REQUIRE_MESSAGE(plain, plain.error().message());
    CHECK(plain.value().buffers.size() == 3);
    CHECK(plain.value().plan->slots.size() == 3);
    CHECK(operand_of(plain.value().plan->ops[0], "bias").is_none());

    op.bias = buffer_ref(13, 2);
    const auto biased = record(op);
    REQUIRE_MESSAGE(biased, biased.error().message());
    CHECK(biased.value().buffers.size() == 4);
    CHECK(operand_of(biased.value().plan->ops[0], "bias").slot == 2);
    CHECK(operand_of(biased.value().plan->ops[0], "c").is_none());

    op.bias = ref<float>();
    CHECK(record(op).error().message() == "graph 7: op 1 (blas.matmul<f32 from f32>): bias names no buffer");
    op.bias = buffer_ref(13, 0);
    CHECK(record(op).error().message() == "graph 7: op 1 (blas.matmul<f32 from f32>): bias has 0 elements");
    op.bias = buffer_ref(12, 2);
    CHECK(record(op).error().message() == "graph 7: op 1 (blas.matmul<f32 from f32>): d and bias overlap");
    op.bias = {};
    op.a.raw = optional_in<float>().raw;
    CHECK(record(op).error().message() == "graph 7: op 1 (blas.matmul<f32 from f32>): a names no buffer");
}

TEST_CASE("the operands of a list are in the text and in files, without those that have no buffer")
{
    const auto build = [](std::size_t count) {
        plan_builder b("list");
        const auto x = b.input<float>(4, "x");
        const auto y = b.output<float>(4 * count, "y");
        batched op{.m = 2, .n = 2, .k = 2};
        for (std::size_t i = 0; i < count; ++i)
            op.add(x, x, y.subspan(4 * i, 4));
        b.add(op);
        return finish(b);
    };
    const auto plan = build(2);
    const auto text = plan.to_text();
    CHECK(text.find("op 1: blas.gemm_batched<f32>: a[0] = x [0, 4), a[1] = x [0, 4), b[0] = x [0, 4), "
                    "b[1] = x [0, 4), c[0] = y [0, 4), c[1] = y [4, 8), count = 2, m = 2, n = 2, k = 2, ") !=
          text.npos);
    CHECK(plan.to_graphviz().find("op1 -> slot1 [label=\"c[1]\"]") != text.npos);
    CHECK(plan.to_graphviz().find("[2]") == text.npos);
    for (const std::size_t count : {1, 2, 32}) {
        CAPTURE(count);
        auto file = test::file_of(build(count));
        const auto has = [&](std::size_t i) {
            return test::find_in_description(file, "c[" + std::to_string(i) + "]") < file.size();
        };
        CHECK(has(count - 1));
        CHECK_FALSE(has(count));
        const auto loaded = test::read_file(file);
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        CHECK(loaded.value() == build(count));
        CHECK(loaded.value().to_text() == build(count).to_text());
    }
    CHECK(build(1) != build(2));
}

TEST_CASE("an operand without a slot that has elements names no slot")
{
    plan_builder b("p");
    const auto x = b.input<float>(4);
    batched op{.m = 2, .n = 2, .k = 2};
    op.add(x, x, b.output<float>(4));
    const auto wrong = ref<float>::from_raw({.slot = any_ref::no_slot, .size = 4, .type = dtype::f32});
    op.c[1] = wrong;
    op.c[2] = wrong;
    b.add(op);
    CHECK(b.finish().error() == errc::invalid_argument);
    CHECK(b.finish().error().message() == "plan p: op 1 (blas.gemm_batched<f32>): c[1] names no slot");
}

TEST_CASE("a measurement cannot be in a plan or a graph")
{
    plan_builder b("p");
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    const matmul product{.a = x, .b = x, .d = y, .m = 2, .n = 2, .k = 2};
    b.add(product).add(tune<matmul>{product});
    CHECK(b.finish().error() == errc::invalid_argument);
    CHECK(b.finish().error().message() == "plan p: op 2 (blas.matmul<f32 from f32> tuned): its reply is its only "
                                          "effect, but a plan returns no replies");

    const auto one =
        ref<float>::from_raw({.device = 3, .generation = 2, .slot = 10, .version = 5, .size = 8, .type = dtype::f32});
    op_list ops;
    ops.add(tune<matmul>{{.a = one.first(4), .b = one.first(4), .d = one.subspan(4, 4), .m = 2, .n = 2, .k = 2}});
    const auto recorded = record_graph(std::move(op_list_access::ops(ops)), "graph 7");
    REQUIRE_FALSE(recorded);
    CHECK(recorded.error() == errc::invalid_argument);
    CHECK(recorded.error().message().starts_with("graph 7: op 1 (blas.matmul<f32 from f32> tuned): its reply is its "
                                                 "only effect, but a graph returns no replies"));
}

TEST_CASE("the results of a list must not overlap in a slot")
{
    plan_builder b("p");
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(8, "y");
    batched op{.m = 2, .n = 2, .k = 2};
    op.add(x, x, y.first(4)).add(x, x, y.subspan(3, 4));
    b.add(op);
    CHECK(b.finish().error() == errc::overlap);
    CHECK(b.finish().error().message() == "plan p: op 1 (blas.gemm_batched<f32>): c[0] and c[1] overlap in y [3, 4)");
}

TEST_SUITE_END();

} // namespace test_plan_optional_operands
