#include "jit/image.hpp"
#include "support/example_plans.hpp"
#include "support/plan_files.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/ops/jit.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace test_plan_set_file {

namespace {

using namespace coaccel;
using test::read_set_file;

const detail::plan_set_data& data_of(const plan_set_description& s)
{
    return *detail::plan_set_access::data(s);
}

const detail::plan_data& data_of(const plan_description& p)
{
    return *detail::plan_access::data(p);
}

/// Ends the test case if the set cannot be read back.
plan_set_description round_trip(const plan_set_description& d)
{
    auto made = read_set_file(test::file_of(d));
    REQUIRE_MESSAGE(made, made.error().message());
    return made.value();
}

void check_same(const plan_set_description& d)
{
    const auto made = round_trip(d);
    CHECK(made.id() == d.id());
    CHECK(made.name() == d.name());
    CHECK(made.memory() == d.memory());
    CHECK(made.to_text() == d.to_text());
    CHECK(made.to_graphviz() == d.to_graphviz());
    CHECK(data_of(made).users == data_of(d).users);
    REQUIRE(made.size() == d.size());
    for (std::size_t i = 0; i < d.size(); ++i) {
        CAPTURE(i);
        CHECK(made[i] == d[i]);
        CHECK(made[i].name() == d[i].name());
        CHECK(data_of(made).plans[i].name == data_of(d).plans[i].name);
        CHECK(data_of(made).plans[i].states == data_of(d).plans[i].states);
    }
}

std::size_t occurrences(test::file_bytes file, std::string_view text)
{
    std::size_t count = 0;
    for (const std::string other(text.size(), '#'); test::replace(file, text, other);)
        ++count;
    return count;
}

/// The contents of a file of this set or plan.
template <class Description>
std::size_t contents_in_file(const Description& d)
{
    if constexpr (std::is_same_v<Description, plan_description>)
        return detail::write_plan(d).value().contents.size();
    else
        return detail::write_plan_set(d).value().contents.size();
}

plan_set_description one_plan(std::string set, std::string plan)
{
    plan_set_builder made(std::move(set));
    const auto s = made.state<float>(1, "s");
    made.plan(std::move(plan)).add(memory::fill<float>{.dst = s, .value = 1});
    return made.finish().value();
}

plan_description nameless()
{
    plan_builder b;
    b.add(memory::fill<float>{.dst = b.output<float>(1)});
    return b.finish().value();
}

TEST_SUITE_BEGIN("plan set file");

TEST_CASE("a set is read as it was written")
{
    check_same(test::varied_set());
    check_same(test::counting_set());
    check_same(one_plan("one", "only"));
    check_same(one_plan("", "only"));
}

TEST_CASE("names may contain anything, and that of a plan may be like that of its set")
{
    const std::string odd("a.\0b\n\xff\"", 7);
    check_same(one_plan(odd, odd));
    check_same(one_plan("", odd));
    check_same(one_plan("a", "a.a"));
    CHECK(round_trip(one_plan("a.b", "c"))["c"].name() == "a.b.c");
}

TEST_CASE("a set of many plans is read as it was written")
{
    plan_set_builder set("many");
    const auto w = set.constant<float>(std::vector<float>(16, 2), "w");
    const auto total = set.state<float>(16, "total");
    for (std::uint64_t rows = 1; rows <= 300; ++rows) {
        plan_builder& b = set.plan("rows" + std::to_string(rows));
        const auto x = b.input<float>(rows * 16);
        const auto y = b.output<float>(rows);
        b.add(blas::gemv<float>{.a = x, .x = w, .y = y, .m = rows, .n = 16});
        b.add(blas::axpy<float>{.x = w, .y = total, .n = 16, .alpha = float(rows)});
    }
    const auto made = set.finish().value();
    check_same(made);
    CHECK(contents_in_file(made) == 1);
    CHECK(data_of(round_trip(made)).users == std::vector<std::uint32_t>{300});
}

TEST_CASE("common states keep their numbers, whatever the order in which the plans use them")
{
    plan_set_builder set;
    const auto a = set.state<float>(1, "a");
    const auto b = set.state<float>(1, "b");
    const auto c = set.state<float>(1, "c");
    set.plan("first").add(memory::copy<float>{c, a});
    set.plan("second").add(memory::copy<float>{a, b});
    set.plan("third").add(memory::copy<float>{a, c});
    const auto made = set.finish().value();
    check_same(made);
    CHECK(data_of(round_trip(made)).plans[0].states == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("equal plans that have a state in common, or have one each, are still different sets")
{
    const auto with = [](bool common) {
        plan_set_builder set;
        const auto a = set.state<float>(4, "a");
        const auto b = common ? a : set.state<float>(4, "a");
        set.plan("x").add(memory::fill<float>{.dst = a});
        set.plan("y").add(memory::fill<float>{.dst = b});
        return set.finish().value();
    };
    check_same(with(true));
    check_same(with(false));
    CHECK(round_trip(with(true)) != round_trip(with(false)));
}

TEST_CASE("durable states that plans have in common are read with their rule")
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
        plan_set_builder set("s");
        const auto a = set.state<float>(std::vector<float>{1, 2}, durable{rule}, "a");
        const auto b = set.state<float>(2, durable{rule}, "b");
        set.plan("x").add(memory::copy<float>{a, b});
        set.plan("y").add(memory::copy<float>{b, a});
        const auto made = set.finish().value();
        check_same(made);
        const auto read = round_trip(made);
        for (const std::size_t i : {0, 1})
            for (const auto& s : data_of(read[i]).slots)
                CHECK(s.durable == rule);
    }
}

TEST_CASE("a constant or an initial content that plans have in common is in the file once")
{
    const auto made = test::varied_set();
    // w; v of three plans; the equal initial contents of a and b; that of single; own of three plans.
    CHECK(contents_in_file(made) == 1 + 3 + 2 + 1 + 3);
    const auto read = round_trip(made);
    // v, then what belongs to the set, in the order of its first use.
    const auto constant = [&](std::size_t plan) { return data_of(read[plan]).constant_contents[1]; };
    CHECK(reinterpret_cast<const float*>(constant(0).data.get())[1] == 6);
    CHECK(constant(1).data.get() == constant(0).data.get());
    CHECK(constant(2).data.get() == constant(0).data.get());
    CHECK(constant(2).identity == constant(0).identity);
    // own, then those of the set: b and a.
    CHECK(data_of(read[1]).state_contents[1].data == data_of(read[2]).state_contents[1].data);
    CHECK(data_of(read[1]).state_contents[2].data != data_of(read[2]).state_contents[1].data);
}

TEST_CASE("equal constants of one plan are in its file once")
{
    const auto with = [](float last) {
        plan_builder b("p");
        const auto v = b.constant<float>(std::vector<float>{1, 2}, "v");
        const auto w = b.constant<float>(std::vector<float>{1, last}, "w");
        const auto y = b.output<float>(2);
        b.add(memory::copy<float>{v, y});
        b.add(blas::axpy<float>{.x = w, .y = y, .n = 2});
        return b.finish().value();
    };
    CHECK(contents_in_file(with(2)) == 1);
    CHECK(contents_in_file(with(3)) == 2);
    for (const float last : {2.f, 3.f}) {
        const auto made = test::read_file(test::file_of(with(last)));
        REQUIRE_MESSAGE(made, made.error().message());
        CHECK(made.value() == with(last));
        CHECK(made.value().to_text() == with(last).to_text());
        const auto& contents = data_of(made.value()).constant_contents;
        CHECK((contents[0].data.get() == contents[1].data.get()) == (last == 2));
    }
}

TEST_CASE("a kernel that several plans launch is in the file once")
{
    const auto make = [](std::string code) {
        return jit::make_kernel(
                   jit::compile_options("scale"),
                   {.symbol = "_Z5scalePKfPff", .code = std::move(code), .log = {}, .source = "the source"})
            .value();
    };
    const auto k = make("code"), other = make("other code");
    plan_set_builder set("kernels");
    const auto s = set.state<float>(4);
    for (const char* name : {"a", "b", "c"}) {
        plan_builder& b = set.plan(name);
        b.add(jit::launch(name[0] == 'b' ? other : k, {}, in(b.input<float>(4)), out(s), 2.0f));
    }
    const auto made = set.finish().value();
    check_same(made);
    CHECK(occurrences(test::file_of(made), "the source") == 2);
    const auto read = round_trip(made);
    const auto image = [&](std::size_t plan) { return data_of(read[plan]).ops[0].record.kept.get(); };
    CHECK(image(0) == image(2));
    CHECK(image(0) != image(1));
}

TEST_CASE("a set that was read can be written again, and is the same")
{
    for (const auto& d : {test::varied_set(), test::counting_set(), one_plan("a", "b")}) {
        const auto first = test::file_of(d);
        CHECK((test::file_of(read_set_file(first).value()) == first));
    }
}

TEST_CASE("a file of one plan is a set of one plan, with its name")
{
    const auto made = read_set_file(test::file_of(test::varied_plan()));
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made.value().name().empty());
    REQUIRE(made.value().size() == 1);
    CHECK(made.value()["varied"] == test::varied_plan());
    CHECK(made.value()[0].name() == "varied");
    CHECK(made.value()[0].to_text() == test::varied_plan().to_text());
    CHECK(data_of(made.value()).users.empty());
    check_same(made.value());
}

TEST_CASE("a file of a plan without a name is a set with the plan \"plan\"")
{
    const auto made = read_set_file(test::file_of(nameless()));
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made.value()["plan"] == nameless());
    CHECK(made.value()[0].name() == "plan");
    check_same(made.value());
    // As a plan, it still has no name.
    CHECK(test::read_file(test::file_of(nameless())).value().name().empty());
}

TEST_CASE("a file of a set is not a plan")
{
    const auto message = [](const plan_set_description& d) {
        const auto made = test::read_file(test::file_of(d));
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::file_invalid);
        return made.error().message();
    };
    CHECK(message(test::counting_set()) == "plan file test: it has a set of 3 plans; call plan_set_description::load");
    CHECK(message(one_plan("a", "b")) == "plan file test: it has a set of 1 plan; call plan_set_description::load");
}

TEST_CASE("the contents of a set are mapped, not copied, for as long as one of its plans exists")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    REQUIRE(test::varied_set().save(path));
    for (const auto check : {content_check::hash, content_check::none}) {
        auto made = plan_set_description::load(path, check);
        REQUIRE_MESSAGE(made, made.error().message());
        CHECK(made.value() == test::varied_set());
        const auto mapped = test::mappings_of(path);
        REQUIRE(mapped.size() == 1);
        std::size_t found = 0;
        const auto check_place = [&](const detail::plan_content& c) {
            if (!c.data || c.bytes == sizeof(float))
                return; // no initial content; a factor, which the plan has made itself
            const auto at = reinterpret_cast<std::uintptr_t>(c.data.get());
            CHECK(at >= mapped[0].first);
            CHECK(at + c.bytes <= mapped[0].second);
            CHECK(at % detail::content_alignment == 0);
            ++found;
        };
        for (std::size_t i = 0; i < made.value().size(); ++i) {
            for (const auto& c : data_of(made.value()[i]).constant_contents)
                check_place(c);
            for (const auto& c : data_of(made.value()[i]).state_contents)
                check_place(c);
        }
        CHECK(found == 3 * 3 + 2 * 2 + 1);
        auto last = made.value()[2];
        made = errc::no_value;
        CHECK(test::mappings_of(path).size() == 1);
        last = {};
        CHECK(test::mappings_of(path).empty());
    }
}

TEST_CASE("a set can be saved over the file that it was loaded from")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    REQUIRE(test::varied_set().save(path));
    const auto first = plan_set_description::load(path);
    REQUIRE(first);
    REQUIRE(first.value().save(path));
    REQUIRE(test::counting_set().save(path));
    CHECK(test::file_of(first.value()) == test::file_of(test::varied_set()));
    CHECK(plan_set_description::load(path).value() == test::counting_set());
    // A plan replaces a set, and the other way round.
    REQUIRE(test::axpy_plan().save(path));
    CHECK(plan_description::load(path).value() == test::axpy_plan());
}

TEST_CASE("a set that cannot be saved leaves the old file, and the error names the plan and the op")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    REQUIRE(test::counting_set().save(path));
    const auto k = jit::make_kernel(jit::compile_options("f"), {"f", "code", {}});
    plan_set_builder set("s");
    const auto y = set.state<float>(1);
    set.plan("good").add(memory::fill<float>{.dst = y});
    set.plan("bad").add(memory::fill<float>{.dst = y}).add(jit::launch(k.value(), {}, out(y)));
    const auto saved = set.finish().value().save(path);
    REQUIRE_FALSE(saved);
    CHECK(saved.error() == errc::not_savable);
    CHECK(saved.error().message() == "plan s.bad: op 2 (jit.launch): the source of the kernel f is not known");

    const auto empty = plan_set_description().save(path);
    REQUIRE_FALSE(empty);
    CHECK(empty.error() == errc::invalid_argument);
    CHECK(empty.error().message() == "plan_set_description::save: the set is empty");

    const auto missing = test::varied_set().save(folder / "none/a.plan");
    REQUIRE_FALSE(missing);
    CHECK(missing.error() == errc::file_failed);

    CHECK(plan_set_description::load(path).value() == test::counting_set());
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a set file that does not exist is named with the reason")
{
    const test::temporary_folder folder;
    const auto path = folder / "none.plan";
    const auto loaded = plan_set_description::load(path);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error() == errc::file_failed);
    CHECK(loaded.error().message() == "cannot open " + path + ": No such file or directory");
}

TEST_SUITE_END();

} // namespace

} // namespace test_plan_set_file
