#include "jit/image.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/ops/rand.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace test_plan_identity {

namespace {

using namespace coaccel;

void twice(const jit::launch_shape&, const float*, float*, float) {}
void thrice(const jit::launch_shape&, const float*, float* y, float)
{
    *y = 3;
}

/// Everything that a plan of all kinds of slots and ops can differ in.
struct content {
    std::string name = "a";
    std::string slot_name = "x";
    std::uint64_t inputs = 4;
    std::uint64_t spare_scratch = 4;
    bool spare_is_output = false;
    std::vector<float> constant{1, 2, 3, 4};
    std::vector<float> state{};
    std::optional<durable> kept{};
    float alpha = 1;
    blas::transpose trans = blas::transpose::no;
    std::uint64_t offset = 0;
    std::string kernel = "scale";
    std::string symbol = "_Z5scalePKfPff";
    std::string code = "code";
    void (*host)(const jit::launch_shape&, const float*, float*, float) = nullptr;
    jit::launch_shape shape{};
    float argument = 2;
    std::string function = "f";
    plugin::version version{};
    rand::generator_options generator{};
    bool same_generator = true;
    bool as_inout = false;
    bool swapped = false;
};

plan_description build(const content& c)
{
    plan_builder b(c.name);
    const auto x = b.input<float>(c.inputs, c.slot_name).first(2);
    const auto w = b.constant<float>(c.constant);
    const auto s = c.kept ? b.state<float>(2, *c.kept) : c.state.empty() ? b.state<float>(2) : b.state<float>(c.state);
    const auto y = b.output<float>(8);
    const auto spare = c.spare_is_output ? b.output<float>(c.spare_scratch) : b.scratch<float>(c.spare_scratch);

    jit::compile_options options(c.kernel);
    if (c.host)
        options.host(c.host);
    const auto k = jit::make_kernel(options, {c.symbol, c.code, {}}).value();
    const auto first = rand::make_generator(c.generator);
    const auto second = c.same_generator ? first : rand::make_generator(c.generator);

    b.add(memory::fill<float>{.dst = spare});
    b.add(memory::fill<float>{.dst = y});
    b.add(blas::gemv<float>{
        .a = w, .x = x, .y = y.subspan(c.offset, 2), .m = 2, .n = 2, .alpha = c.alpha, .trans = c.trans});
    b.add(jit::launch(k, c.shape, in(x), out(y.subspan(2, 2)), c.argument));
    if (c.as_inout)
        b.add(plugin::call(c.function, c.version, inout(s), 7));
    else
        b.add(plugin::call(c.function, c.version, out(s), 7));
    const rand::uniform<float> one{.dst = y.subspan(4, 2), .from = first};
    const rand::uniform<float> two{.dst = y.subspan(6, 2), .from = second};
    b.add(c.swapped ? two : one).add(c.swapped ? one : two);
    auto made = b.finish();
    REQUIRE_MESSAGE(made.has_value(), made.error().message());
    return made.value();
}

struct change {
    const char* name;
    void (*apply)(content& c);
};

const change changes[] = {
    {"the size of a slot", [](content& c) { c.inputs = 5; }},
    {"the size of an unused part", [](content& c) { c.spare_scratch = 5; }},
    {"the kind of a slot", [](content& c) { c.spare_is_output = true; }},
    {"a value of a constant", [](content& c) { c.constant[3] = 5; }},
    {"the size of a constant", [](content& c) { c.constant.push_back(5); }},
    {"an initial state", [](content& c) { c.state = {1, 2}; }},
    {"another initial state", [](content& c) { c.state = {1, 3}; }},
    {"a durable state", [](content& c) { c.kept = durable{suspect_rule::keep}; }},
    {"another rule of a durable state", [](content& c) { c.kept = durable{suspect_rule::reset}; }},
    {"a number", [](content& c) { c.alpha = 2; }},
    {"an enumerator", [](content& c) { c.trans = blas::transpose::yes; }},
    {"a range", [](content& c) { c.offset = 1; }},
    {"the name of a kernel", [](content& c) { c.kernel = "ns::scale"; }},
    {"the symbol of a kernel", [](content& c) { c.symbol = "scale"; }},
    {"the code of a kernel", [](content& c) { c.code = "other code"; }},
    {"a host function", [](content& c) { c.host = twice; }},
    {"another host function", [](content& c) { c.host = thrice; }},
    {"a grid", [](content& c) { c.shape.grid.y = 2; }},
    {"a block", [](content& c) { c.shape.block.y = 2; }},
    {"shared memory", [](content& c) { c.shape.shared_bytes = 2; }},
    {"an argument", [](content& c) { c.argument = 3; }},
    {"a function of a plug-in", [](content& c) { c.function = "g"; }},
    {"the version of a function", [](content& c) { c.version.number = 1; }},
    {"another version of a function", [](content& c) { c.version.number = 2; }},
    {"how an argument is used", [](content& c) { c.as_inout = true; }},
    {"the algorithm of a generator", [](content& c) { c.generator.algorithm = rand::algorithm::xorwow; }},
    {"the seed of a generator", [](content& c) { c.generator.seed = 1; }},
    {"the offset of a generator", [](content& c) { c.generator.offset = 1; }},
    {"the ordering of a generator", [](content& c) { c.generator.ordering = rand::ordering::legacy; }},
    {"which ops share a generator", [](content& c) { c.same_generator = false; }},
    {"the order of ops", [](content& c) { c.swapped = true; }},
};

} // namespace

TEST_SUITE_BEGIN("plan identity");

TEST_CASE("plans with the same content have the same id, though built by other builders with other kernels")
{
    const auto a = build({});
    const auto b = build({});
    CHECK(a.id() == b.id());
    CHECK(a == b);
    CHECK(a.id() != content_id());
}

TEST_CASE("every change of the content changes the id")
{
    std::map<content_id, std::string> seen{{build({}).id(), "no change"}};
    for (const auto& c : changes) {
        CAPTURE(c.name);
        content changed;
        c.apply(changed);
        const auto p = build(changed);
        const auto added = seen.emplace(p.id(), c.name);
        CHECK_MESSAGE(added.second, "same id as ", added.first->second);
        CHECK(build(changed) == p);
    }
}

TEST_CASE("names do not belong to the id")
{
    content named;
    named.name = "b";
    named.slot_name = "y";
    CHECK(build(named) == build({}));
}

TEST_CASE("the padding of an op does not belong to the id")
{
    const auto with_padding = [](int padding) {
        plan_builder b;
        alignas(memory::fill<std::uint8_t>) std::byte room[sizeof(memory::fill<std::uint8_t>)];
        std::memset(room, padding, sizeof(room));
        const auto* o = new (room) memory::fill<std::uint8_t>{.dst = b.output<std::uint8_t>(4), .value = 1};
        b.add(*o);
        return b.finish().value().id();
    };
    CHECK(with_padding(0) == with_padding(0xff));
}

TEST_CASE("an element type, a name of an op and a field count, though the bytes are the same")
{
    std::map<content_id, int> seen;
    const auto add = [&](auto&& build) {
        plan_builder b;
        build(b);
        ++seen[b.finish().value().id()];
    };
    add([](plan_builder& b) { b.add(memory::fill<float>{.dst = b.output<float>(4)}); });
    add([](plan_builder& b) { b.add(memory::fill<std::uint32_t>{.dst = b.output<std::uint32_t>(4)}); });
    add([](plan_builder& b) { b.add(memory::fill<std::int32_t>{.dst = b.output<std::int32_t>(4)}); });
    add([](plan_builder& b) {
        b.add(store_reply(blas::asum<float>{.x = b.input<float>(4), .n = 4}, b.output<float>(1)));
    });
    add([](plan_builder& b) {
        b.add(store_reply(blas::nrm2<float>{.x = b.input<float>(4), .n = 4}, b.output<float>(1)));
    });
    CHECK(seen.size() == 5);
}

TEST_CASE("an id in text has 32 digits")
{
    CHECK(to_string(content_id{0x0123456789abcdef, 0xfedcba9876543210}) == "0123456789abcdeffedcba9876543210");
    CHECK(to_string(content_id{}) == std::string(32, '0'));
}

TEST_SUITE_END();

} // namespace test_plan_identity
