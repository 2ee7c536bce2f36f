#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace test_plan_plan_builder {

namespace {

using namespace coaccel;

const detail::plan_data& data_of(const plan_description& p)
{
    return *detail::plan_access::data(p);
}

/// The ref in the operand of an op.
any_ref operand(const detail::plan_data& p, std::size_t op, std::size_t i)
{
    const auto& o = p.ops[op];
    any_ref r;
    std::memcpy(&r, reinterpret_cast<const char*>(o.record.op.data()) + o.info->operands[i].offset, sizeof(r));
    return r;
}

} // namespace

TEST_SUITE_BEGIN("plan_builder");

TEST_CASE("a plan of one product has the slots and the op that were added")
{
    plan_builder b("classify");
    const auto x = b.input<float>(4);
    const auto w = b.constant<float>(std::vector<float>(8, 1));
    const auto y = b.output<float>(2, "scores");
    b.add(blas::gemv<float>{.a = w, .x = x, .y = y, .m = 2, .n = 4});
    const auto made = b.finish();
    REQUIRE(made);
    const plan_description& p = made.value();
    CHECK(p.name() == "classify");
    CHECK(p.ops() == 1);
    CHECK(p.inputs() == std::vector<plan_argument>{{"input1", dtype::f32, 4}});
    CHECK(p.outputs() == std::vector<plan_argument>{{"scores", dtype::f32, 2}});
    CHECK(p.memory() == plan_memory{.instance = 512, .constants = 32, .staged = 24});
    CHECK(bool(p));
}

TEST_CASE("a builder moves and is not copied; a description is copied")
{
    static_assert(std::is_nothrow_move_constructible_v<plan_builder>);
    static_assert(!std::is_copy_constructible_v<plan_builder>);
    static_assert(std::is_copy_constructible_v<plan_description>);
    plan_builder a("moved");
    const auto y = a.output<float>(2);
    plan_builder b = std::move(a);
    b.add(memory::fill<float>{.dst = y});
    const auto p = b.finish().value();
    CHECK(p.name() == "moved");
    const auto copy = p;
    CHECK(copy == p);
    CHECK(&data_of(copy) == &data_of(p));
}

TEST_CASE("an empty description has nothing")
{
    const plan_description p;
    CHECK(!p);
    CHECK(p.name().empty());
    CHECK(p.id() == content_id());
    CHECK(p.ops() == 0);
    CHECK(p.memory() == plan_memory());
    CHECK(p.inputs().empty());
    CHECK(p.outputs().empty());
    CHECK(p.to_text().empty());
    CHECK(p.to_graphviz().empty());
    CHECK(p == plan_description());
}

TEST_CASE("slots without a name are numbered by kind")
{
    plan_builder b;
    b.input<float>(1);
    b.input<float>(1, "second");
    b.input<float>(1);
    b.scratch<float>(1);
    b.state<float>(1);
    b.constant<float>(std::array{1.0f});
    const auto y = b.output<float>(1);
    b.add(memory::fill<float>{.dst = y});
    std::vector<std::string> names;
    const auto p = b.finish().value();
    for (const auto& s : data_of(p).slots)
        names.push_back(s.name);
    CHECK(names ==
          std::vector<std::string>{"input1", "second", "input3", "scratch1", "state1", "constant1", "output1"});
}

TEST_CASE("the refs of a finished plan name its slots, not its builder")
{
    plan_builder b;
    const auto x = b.input<float>(8);
    const auto y = b.output<float>(4);
    CHECK(x.raw().device == detail::plan_device);
    CHECK(x.raw().generation != 0);
    CHECK(x.raw().generation == y.raw().generation);
    CHECK(x.size() == 8);
    b.add(memory::copy<float>{.src = x.subspan(1, 6).subspan(2, 4), .dst = y});
    const auto p = b.finish().value();
    CHECK(operand(data_of(p), 0, 0) ==
          any_ref{.device = detail::plan_device, .slot = 0, .offset = 3, .size = 4, .type = dtype::f32});
    CHECK(operand(data_of(p), 0, 1) ==
          any_ref{.device = detail::plan_device, .slot = 1, .size = 4, .type = dtype::f32});
}

TEST_CASE("a finished builder can be finished again and extended")
{
    plan_builder b;
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    b.add(memory::copy<float>{.src = x, .dst = y});
    const auto first = b.finish().value();
    CHECK(b.finish().value() == first);
    const auto id = first.id();
    const auto text = first.to_text();

    const auto z = b.output<float>(4);
    CHECK(b.finish().error() == errc::invalid_argument);
    b.add(memory::copy<float>{.src = y, .dst = z});
    const auto second = b.finish().value();
    CHECK(second.ops() == 2);
    CHECK(second != first);
    CHECK(first.ops() == 1);
    CHECK(first.id() == id);
    CHECK(first.to_text() == text);
}

TEST_CASE("a builder that has a problem keeps it, with its message")
{
    plan_builder b("p");
    b.input<float>(0);
    b.add(memory::fill<float>{.dst = b.output<float>(4)});
    // The messages of error codes are kept only for a while.
    for (int i = 0; i < 1000; ++i)
        (void)make_error_with_message(errc::invalid_argument, "error " + std::to_string(i));
    for (int i = 0; i < 2; ++i)
        CHECK(b.finish().error().message() == "plan p: input1: count is 0");
}

TEST_CASE("a constant is copied")
{
    plan_builder b;
    std::vector<float> values{1, 2, 3};
    const auto w = b.constant<float>(values);
    values = {4, 5, 6};
    b.add(memory::copy<float>{.src = w, .dst = b.output<float>(3)});
    const auto p = b.finish().value();
    const auto& content = data_of(p).constant_contents.at(0);
    REQUIRE(content.bytes == 12);
    const auto* kept = reinterpret_cast<const float*>(content.data.get());
    CHECK(std::vector<float>(kept, kept + 3) == std::vector<float>{1, 2, 3});
}

TEST_CASE("a constant with an owner is not copied, and its owner lives as long as the plan")
{
    auto values = std::make_shared<const std::vector<float>>(1 << 20, 1.0f);
    const std::weak_ptr<const std::vector<float>> watch = values;
    const float* const address = values->data();
    plan_description p;
    {
        plan_builder b;
        const auto w = b.constant<float>(*values, values, "weights");
        CHECK(w.size() == values->size());
        b.add(memory::copy<float>{.src = w.first(4), .dst = b.output<float>(4)});
        p = b.finish().value();
        const auto copied = b.constant<float>(*values);
        const auto again = b.finish().value();
        CHECK(copied.size() == values->size());
        CHECK(data_of(again).constant_contents.at(0).id == data_of(again).constant_contents.at(1).id);
    }
    values.reset();
    CHECK(!watch.expired());
    CHECK(data_of(p).constant_contents.at(0).data.get() == reinterpret_cast<const std::byte*>(address));
    p = {};
    CHECK(watch.expired());
}

TEST_CASE("a constant without an owner stays where it is")
{
    static const float values[] = {1, 2};
    plan_builder b;
    const auto w = b.constant<float>(values, nullptr, "table");
    b.add(memory::copy<float>{.src = w, .dst = b.output<float>(2)});
    const auto p = b.finish().value();
    CHECK(data_of(p).constant_contents.at(0).data.get() == reinterpret_cast<const std::byte*>(values));
}

TEST_CASE("the memory of a description counts what plans need once, for each instance and without sharing")
{
    plan_builder b;
    const auto x = b.input<float>(100);
    const auto w = b.constant<float>(std::vector<float>(100));
    const auto one = b.scratch<float>(100);
    const auto two = b.scratch<float>(100);
    const auto three = b.scratch<float>(100);
    const auto s = b.state<double>(10);
    const auto y = b.output<float>(100);
    b.add(memory::fill<double>{.dst = s});
    b.add(memory::copy<float>{.src = w, .dst = one});
    b.add(memory::copy<float>{.src = one, .dst = two});
    b.add(memory::copy<float>{.src = two, .dst = three});
    b.add(memory::copy<float>{.src = three, .dst = y});
    CHECK(x.size() == 100);
    CHECK(b.finish().value().memory() ==
          plan_memory{
              .instance = 512 + 512 + 1024, .constants = 400, .states = 80, .staged = 800, .unshared_scratch = 1536});
}

TEST_SUITE_END();

} // namespace test_plan_plan_builder
