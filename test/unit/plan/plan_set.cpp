#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace test_plan_plan_set {

namespace {

using namespace coaccel;

const detail::plan_set_data& data_of(const plan_set_description& s)
{
    return *detail::plan_set_access::data(s);
}

std::string message(const plan_set_builder& s)
{
    const auto made = s.finish();
    return made ? std::string("no error") : made.error().message();
}

/// Two plans that add a multiple of their input to a common state.
struct counters {
    explicit counters(std::string name = "counters") : set(std::move(name))
    {
        add(one, 1);
        add(two, 2);
    }

    void add(plan_builder& b, float alpha)
    {
        const auto x = b.input<float>(4, "x");
        const auto y = b.output<float>(4, "y");
        b.add(blas::axpy<float>{.x = x, .y = total, .n = 4, .alpha = alpha});
        b.add(memory::copy<float>{total, y});
    }

    plan_set_builder set;
    ref<float> total = set.state<float>(std::vector<float>{1, 2, 3, 4}, "total");
    plan_builder& one = set.plan("one");
    plan_builder& two = set.plan("two");
};

} // namespace

TEST_SUITE_BEGIN("plan_set_builder");

TEST_CASE("a state that two plans use is common to them")
{
    const counters c;
    const auto made = c.set.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    const plan_set_description& s = made.value();
    CHECK(bool(s));
    CHECK(s.name() == "counters");
    REQUIRE(s.size() == 2);
    CHECK(s["one"] == s[0]);
    CHECK(s["two"] == s[1]);
    CHECK_FALSE(s["three"]);
    CHECK_FALSE(s[2]);
    CHECK(s["two"].name() == "counters.two");
    CHECK(data_of(s).users == std::vector<std::uint32_t>{2});
    for (const auto& p : data_of(s).plans)
        CHECK(p.states == std::vector<std::uint32_t>{0});
    // The state and what both plans need for themselves.
    CHECK(s.memory() == plan_memory{.instance = 1024, .states = 16, .staged = 64});
}

TEST_CASE("a state that one plan uses is its own, and one that no plan uses needs no memory")
{
    counters c;
    const auto own = c.set.state<float>(2, "own");
    c.set.state<float>(1000, "unused");
    c.two.add(memory::fill<float>{.dst = own});
    // A state of the plan itself, which has the index of the common one in the set.
    c.two.add(memory::fill<float>{.dst = c.two.state<float>(2)});
    const auto made = c.set.finish().value();
    CHECK(data_of(made).users == std::vector<std::uint32_t>{2});
    CHECK(data_of(made).plans[0].states == std::vector<std::uint32_t>{0});
    const std::uint32_t none = detail::own_state;
    // The plan's own slots come first.
    CHECK(data_of(made).plans[1].states == std::vector<std::uint32_t>{none, 0, none});
    CHECK(made.memory().states == 16 + 8 + 8);
}

TEST_CASE("several states of a set are numbered in their order")
{
    plan_set_builder set;
    const auto a = set.state<float>(1, "a");
    const auto b = set.state<float>(1, "b");
    const auto c = set.state<float>(1, "c");
    plan_builder& first = set.plan("first");
    first.add(memory::copy<float>{c, a});
    plan_builder& second = set.plan("second");
    second.add(memory::copy<float>{a, b});
    plan_builder& third = set.plan("third");
    third.add(memory::copy<float>{a, c});
    const auto made = set.finish().value();
    const std::uint32_t none = detail::own_state;
    CHECK(data_of(made).users == std::vector<std::uint32_t>{3, 2});
    CHECK(data_of(made).plans[0].states == std::vector<std::uint32_t>{1, 0});
    CHECK(data_of(made).plans[1].states == std::vector<std::uint32_t>{0, none});
    CHECK(data_of(made).plans[2].states == std::vector<std::uint32_t>{0, 1});
    CHECK(made["first"].name() == "first");
}

TEST_CASE("a constant of the set is the same memory in every plan that uses it")
{
    plan_set_builder set;
    const auto w = set.constant<float>(std::vector<float>(8, 3), "w");
    const std::vector<float> kept(4, 2);
    const auto v = set.constant<float>(std::span(kept), nullptr, "v");
    for (const char* name : {"a", "b"}) {
        plan_builder& b = set.plan(name);
        const auto y = b.output<float>(8);
        b.add(memory::copy<float>{w, y});
        if (name[0] == 'b')
            b.add(memory::copy<float>{v, y.subspan(0, 4)});
    }
    const auto made = set.finish().value();
    const auto& a = detail::plan_access::data(made["a"])->constant_contents;
    const auto& b = detail::plan_access::data(made["b"])->constant_contents;
    REQUIRE(a.size() == 1);
    REQUIRE(b.size() == 2);
    CHECK(a[0].data == b[0].data);
    CHECK(static_cast<const void*>(b[1].data.get()) == kept.data());
    CHECK(made.memory().constants == 32 + 16);
    CHECK(data_of(made).users.empty());
}

TEST_CASE("a state counts as written, a constant must not be written")
{
    plan_set_builder set("s");
    const auto w = set.constant<float>(std::vector<float>(8, 3), "w");
    const auto s = set.state<float>(8, "s");
    plan_builder& b = set.plan("b");
    b.add(memory::copy<float>{s, b.output<float>(8)});
    CHECK(message(set) == "no error");
    b.add(memory::copy<float>{s, w});
    CHECK(message(set) == "plan s.b: op 2 (memory.copy<f32>): dst writes w, which is a constant");
}

TEST_CASE("slots of another set and of another plan are refused")
{
    counters mine;
    counters other;
    SUBCASE("a state of another set")
    {
        mine.two.add(memory::fill<float>{.dst = other.total});
        CHECK(message(mine.set) == "plan counters.two: op 3 (memory.fill<f32>): dst names a slot of another builder");
    }
    SUBCASE("a slot of another plan of the set")
    {
        mine.two.add(memory::fill<float>{.dst = mine.one.state<float>(4)});
        CHECK(message(mine.set) == "plan counters.two: op 3 (memory.fill<f32>): dst names a slot of another builder");
    }
    SUBCASE("a state of a set in a plan without a set")
    {
        plan_builder b;
        b.add(memory::fill<float>{.dst = mine.total});
        CHECK(b.finish().error() == errc::invalid_argument);
    }
    SUBCASE("a ref that exceeds the state")
    {
        mine.two.add(memory::fill<float>{.dst = mine.total.subspan(2, 3)});
        CHECK(mine.set.finish().error() == errc::out_of_bounds);
    }
}

TEST_CASE("errors name the set or the plan")
{
    CHECK(message(plan_set_builder("empty")) == "plan set empty: it has no plans");
    CHECK(message(plan_set_builder()) == "plan set: it has no plans");
    SUBCASE("a name twice")
    {
        counters c;
        c.set.plan("one");
        CHECK(message(c.set) == "plan set counters: two plans have the name one");
        CHECK(c.set.finish().error() == errc::invalid_argument);
    }
    SUBCASE("no name")
    {
        counters c;
        c.set.plan("");
        CHECK(message(c.set) == "plan set counters: plan 3 has no name");
    }
    SUBCASE("a plan without ops")
    {
        counters c;
        c.set.plan("three");
        CHECK(message(c.set) == "plan counters.three: it has no ops");
    }
    SUBCASE("a slot of the set without elements")
    {
        counters c;
        c.set.state<float>(0, "nothing");
        CHECK(message(c.set) == "plan set counters: nothing: count is 0");
        CHECK(c.one.finish().error() == errc::invalid_argument);
    }
    SUBCASE("too many slots in a plan")
    {
        counters c;
        // It has two already, and needs the state of the set.
        for (std::size_t i = 2; i < plan_builder::max_slots; ++i)
            c.two.scratch<float>(1);
        CHECK(message(c.set) == "plan counters.two: total: a plan has at most 65535 slots");
    }
}

TEST_CASE("a builder of a set can be finished by itself, and is then a plan with its own state")
{
    const counters c;
    const auto alone = c.one.finish();
    REQUIRE(alone);
    CHECK(alone.value() == c.set.finish().value()["one"]);
    CHECK(alone.value().memory().states == 16);
}

TEST_CASE("a set moves with its plans, and is finished as often as wanted")
{
    static_assert(std::is_nothrow_move_constructible_v<plan_set_builder>);
    static_assert(!std::is_copy_constructible_v<plan_set_builder>);
    static_assert(std::is_copy_constructible_v<plan_set_description>);
    counters c;
    const auto before = c.set.finish().value();
    plan_set_builder moved(std::move(c.set));
    CHECK(moved.finish().value() == before);
    c.two.add(memory::fill<float>{.dst = c.total});
    CHECK(moved.finish().value() != before);
    CHECK(moved.finish().value()["one"] == before["one"]);
}

TEST_CASE("an empty description has nothing")
{
    const plan_set_description none;
    CHECK_FALSE(none);
    CHECK(none.name().empty());
    CHECK(none.id() == content_id{});
    CHECK(none.size() == 0);
    CHECK_FALSE(none[0]);
    CHECK_FALSE(none["a"]);
    CHECK(none.memory() == plan_memory{});
    CHECK(none.to_text().empty());
    CHECK(none.to_graphviz().empty());
}

TEST_CASE("the id depends on the plans, their order and what they have in common, not on names")
{
    const auto made = counters().set.finish().value();
    CHECK(made == counters("other").set.finish().value());
    const auto with = [](bool common, bool swapped) {
        plan_set_builder set;
        const auto a = set.state<float>(4);
        const auto b = common ? a : set.state<float>(4);
        for (const bool second : {swapped, !swapped})
            set.plan(second ? "y" : "x").add(memory::fill<float>{.dst = second ? b : a, .value = second ? 2.f : 1.f});
        return set.finish().value();
    };
    CHECK(with(true, false) == with(true, false));
    CHECK(with(true, false) != with(false, false));
    CHECK(with(true, false) != with(true, true));
    // The plans are the same.
    CHECK(with(true, false)["x"] == with(false, true)["x"]);
}

TEST_CASE("the text has the common states, then the plans")
{
    const auto made = counters().set.finish().value();
    const auto content = to_string(detail::plan_access::data(made[0])->state_contents[0].id);
    CHECK(made.to_text() == "plan set counters, id " + to_string(made.id()) +
                                "\n"
                                "common total: state of 4 f32, starts with " +
                                content + ", used by one and two\n" + made[0].to_text() + made[1].to_text());
    CHECK(made[1].to_text().find("total: state of 4 f32, starts with " + content + "\n") != std::string::npos);
}

TEST_CASE("the graph has a cluster for each plan, and the common states outside")
{
    plan_set_builder set("fills");
    const auto s = set.state<float>(4, "s");
    set.plan("a").add(memory::fill<float>{.dst = s});
    plan_builder& b = set.plan("b");
    b.add(memory::copy<float>{s, b.output<float>(4)});
    CHECK(set.finish().value().to_graphviz() == "digraph \"fills\" {\n"
                                                "    subgraph cluster1 {\n"
                                                "    label=\"a\";\n"
                                                "    plan1_op1 [shape=ellipse, label=\"1: memory.fill<f32>\"];\n"
                                                "    }\n"
                                                "    subgraph cluster2 {\n"
                                                "    label=\"b\";\n"
                                                "    plan2_slot0 [shape=box, label=\"output1\\noutput of 4 f32\"];\n"
                                                "    plan2_op1 [shape=ellipse, label=\"1: memory.copy<f32>\"];\n"
                                                "    }\n"
                                                "    common1 [shape=box, label=\"s\\nstate of 4 f32\"];\n"
                                                "    plan1_op1 -> common1 [label=\"dst\"];\n"
                                                "    common1 -> plan2_op1 [label=\"src\"];\n"
                                                "    plan2_op1 -> plan2_slot0 [label=\"dst\"];\n"
                                                "}\n");
}

TEST_SUITE_END();

} // namespace test_plan_plan_set
