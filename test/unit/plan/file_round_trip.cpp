#include "jit/image.hpp"
#include "plan/file/builder_access.hpp"
#include "plan/file/known_ops.hpp"
#include "plan/plan_parts.hpp"
#include "support/every_op.hpp"
#include "support/example_plans.hpp"
#include "support/op_values.hpp"
#include "support/plan_files.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace test_plan_file_round_trip {

namespace {

using namespace coaccel;
using test::read_file;

/// Ends the test case if the plan cannot be read back.
plan_description round_trip(const plan_description& d)
{
    auto made = read_file(test::file_of(d));
    REQUIRE_MESSAGE(made, made.error().message());
    return made.value();
}

void check_same(const plan_description& d)
{
    const auto made = round_trip(d);
    CHECK(made.id() == d.id());
    CHECK(made.name() == d.name());
    CHECK(made.to_text() == d.to_text());
    CHECK(made.memory() == d.memory());
    CHECK(made.inputs() == d.inputs());
    CHECK(made.outputs() == d.outputs());
}

/// A plan with one op, all of whose fields are set.
plan_description plan_of(const op_info& info, test::optional_operands which)
{
    const detail::known_op* const known = detail::find_known_op(info.name);
    REQUIRE(known);
    REQUIRE(known->info == &info);
    plan_builder b("one");
    auto op = known->defaults;
    for (const op_field& f : info.fields) {
        auto* const to = reinterpret_cast<std::byte*>(op.data()) + f.offset;
        if (f.what == op_field::kind::value) {
            test::set_value(info, f, to, which);
            continue;
        }
        if (!test::has_operand(info, f, which))
            continue;
        detail::plan_slot s;
        s.kind = slot_kind::state;
        s.type = f.type;
        s.count = test::operand_offset + std::max(test::operand_elements, test::elements_of_operand(info, f));
        REQUIRE(detail::builder_access::add_slot(b, s));
        const auto& draft = detail::builder_access::draft(b);
        test::set_bytes(to, any_ref{.device = detail::plan_device,
                                    .generation = draft.builder,
                                    .slot = static_cast<std::uint32_t>(draft.slots.size() - 1),
                                    .offset = test::operand_offset,
                                    .size = test::elements_of_operand(info, f),
                                    .type = f.type});
    }
    if (info.operands.empty())
        b.state<float>(1);
    REQUIRE(detail::builder_access::add_op(b, info, op.data(), nullptr, {}, false));
    auto made = b.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    return made.value();
}

TEST_SUITE_BEGIN("plan file");

TEST_CASE("every op that a plan can contain is read as it was written")
{
    int ops = 0, with_optional_operands = 0;
    // Not a template: compiled once, and not for each op.
    const auto check = [&](const op_info& info) {
        if (info.reply_size != 0 &&
            std::ranges::none_of(info.operands, [](const op_field& f) { return writes(f.mode); }))
            return;
        CAPTURE(info.name);
        const auto with_all = plan_of(info, test::optional_operands::given);
        check_same(with_all);
        ++ops;
        if (std::ranges::none_of(info.operands, &op_field::optional))
            return;
        const auto without = plan_of(info, test::optional_operands::omitted);
        check_same(without);
        // The others are required, as those of a list.
        with_optional_operands += without != with_all;
    };
    test::for_each_op([&]<class Op>() {
        if constexpr (detail::is_plan_op<Op> && detail::stands_alone<Op> && !op_with_storable_reply<Op>)
            check(info_of<Op>());
    });
    CHECK(ops > 90);
    CHECK(with_optional_operands == 20);
}

TEST_CASE("every kind of slot, value and op is read as it was written")
{
    check_same(test::varied_plan());
    check_same(test::axpy_plan());
    check_same(test::counting_plan());
}

TEST_CASE("numbers keep all their bits")
{
    plan_builder b;
    const auto y = b.output<double>(1);
    const auto z = b.output<float>(1);
    b.add(memory::fill<double>{.dst = y, .value = -0.0});
    b.add(memory::fill<float>{.dst = z, .value = std::bit_cast<float>(0x7fc12345u)});
    check_same(b.finish().value());
}

TEST_CASE("names may contain anything, and may be empty")
{
    const std::string odd("a\0b\n\xff\"", 6);
    plan_builder b(odd);
    b.add(memory::fill<float>{.dst = b.output<float>(1, odd)});
    const auto made = round_trip(b.finish().value());
    CHECK(made.name() == odd);
    CHECK(made.outputs()[0].name == odd);
    plan_builder plain;
    plain.add(memory::fill<float>{.dst = plain.output<float>(1)});
    CHECK(round_trip(plain.finish().value()).name().empty());
}

TEST_CASE("ops that share a generator still do")
{
    const auto build = [](bool same) {
        plan_builder b;
        const auto one = rand::make_generator({.seed = 1});
        const auto two = same ? one : rand::make_generator({.seed = 1});
        b.add(rand::uniform<float>{.dst = b.output<float>(2), .from = one});
        b.add(rand::uniform<float>{.dst = b.output<float>(2), .from = two});
        return b.finish().value();
    };
    CHECK(round_trip(build(true)) == build(true));
    CHECK(round_trip(build(false)) == build(false));
    CHECK(build(true) != build(false));
}

struct pair {
    float a;
    int b;
};

enum class colour : std::int16_t { red, green };

jit::kernel make_kernel(std::string code = "code", std::string source = "source of it")
{
    jit::compile_options options("ns::f<int>");
    options.option("--use_fast_math").include_folder("/include").add_header("h.cuh", "text").architecture(90);
    return jit::make_kernel(
               options,
               {.symbol = "_Z5scalePKfPf4pairs", .code = std::move(code), .log = {}, .source = std::move(source)})
        .value();
}

plan_description kernel_plan(const jit::kernel& k, const jit::kernel& l)
{
    plan_builder b("kernels");
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    const auto z = b.output<float>(4);
    const jit::launch_shape shape{.grid = {2, 3, 4}, .block = {5, 6, 7}, .shared_bytes = 8};
    b.add(jit::launch(k, shape, in(x), out(y), pair{1, 2}, short(3)));
    b.add(jit::launch(l, {}, in(y), out(z), pair{3, 4}, short(5)));
    b.add(jit::launch(k, {}, in(z), out(y), pair{5, 6}, short(7)));
    return b.finish().value();
}

TEST_CASE("a kernel is read with its source, options and code")
{
    const auto plan = kernel_plan(make_kernel(), make_kernel("other code"));
    check_same(plan);
    const auto made = round_trip(plan);
    const auto& ops = detail::plan_access::data(made)->ops;
    const jit::image& i = detail::image_of(ops[0]);
    CHECK(i.name == "ns::f<int>");
    CHECK(i.source == "source of it");
    CHECK(i.code == "code");
    CHECK(i.symbol == "_Z5scalePKfPf4pairs");
    CHECK(i.options.name() == "ns::f<int>");
    CHECK(i.options.options() == std::vector<std::string>{"--use_fast_math"});
    CHECK(i.options.include_folders() == std::vector<std::string>{"/include"});
    CHECK(i.options.headers() == std::vector<jit::header>{{"h.cuh", "text"}});
    CHECK(i.options.architecture() == 90);
    REQUIRE(i.parameters.known);
    CHECK(i.parameters.parameters.size() == 4);
    CHECK(i.parameters.parameters[0].text == make_kernel().parameters()[0]);
    CHECK(detail::image_of(ops[1]).code == "other code");
    CHECK(&detail::image_of(ops[2]) == &i);
}

TEST_CASE("parameters are read as they were written")
{
    using gemv = blas::gemv<float>;
    plan_builder b("parameters");
    const auto x = b.input<float>(4);
    const auto w = b.constant<float>(std::vector<float>(16, 1));
    const auto y = b.output<float>(4);
    const auto alpha = b.parameter<float>("alpha");
    const auto beta = b.parameter<float>("beta");
    const auto count = b.parameter<short>("count");
    const gemv product{.a = w, .x = x, .y = y, .m = 4, .n = 4};
    b.add(product);
    // The other factor is a constant that the plan has made itself.
    b.add(product, bind(&gemv::beta, alpha));
    b.add(product, bind(&gemv::beta, beta), bind(&gemv::alpha, alpha));
    b.add(jit::launch(make_kernel(), {}, in(x), out(y), pair{1, 2}, count));
    const auto plan = b.finish().value();
    check_same(plan);
    CHECK(round_trip(plan).to_text().find("alpha") != std::string::npos);
}

TEST_CASE("a kernel from a file lives as long as the plan")
{
    std::weak_ptr<const void> kernel;
    {
        const auto made = round_trip(kernel_plan(make_kernel(), make_kernel()));
        kernel = detail::plan_access::data(made)->ops[0].record.kept;
        CHECK_FALSE(kernel.expired());
    }
    CHECK(kernel.expired());
}

TEST_CASE("every kind of argument of a plug-in function is read as it was written")
{
    plan_builder b;
    const auto x = b.state<float>(4);
    const auto g = rand::make_generator({.seed = 3});
    b.add(plugin::call("f", in(x.first(1)), out(x.subspan(1, 1)), inout(x.subspan(2, 2)), true, 'c', std::int8_t(-1),
                       std::uint64_t(1) << 63, 1.5f, half(2.0f), std::complex<double>(1, 2), pair{1, 2}, g));
    b.add(plugin::call("without arguments"));
    b.add(plugin::call("with a version", plugin::version{0xffffffff}, inout(x)));
    b.add(rand::uniform<float>{.dst = x, .from = g});
    check_same(b.finish().value());

    // The names of enumerators belong to the type of the argument, which a file does not contain.
    plan_builder e;
    e.add(plugin::call("f", out(e.state<float>(1)), colour::green, blas::transpose::yes));
    const auto plan = e.finish().value();
    CHECK(round_trip(plan) == plan);
}

TEST_CASE("a file has the version of a function only if the call states it, so that older readers accept the others")
{
    for (const bool stated : {false, true}) {
        plan_builder b;
        b.add(plugin::call("f", plugin::version{stated ? 2u : 0u}, inout(b.state<float>(4))));
        const auto plan = b.finish().value();
        auto file = test::file_of(plan);
        CHECK((test::find_in_description(file, test::number("version", std::uint32_t(2))) < file.size()) == stated);
        CHECK((test::find_in_description(file, "version") < file.size()) == stated);
        check_same(plan);
    }
}

TEST_CASE("durable states are read as they were written")
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
        plan_builder b("p");
        const std::vector<float> initial{1, 2, 3};
        const auto s = b.state<float>(initial, durable{rule}, "s");
        const auto t = b.state<float>(3, durable{rule});
        b.add(memory::copy<float>{.src = s, .dst = t});
        b.add(memory::fill<float>{b.state<float>(3), 1.0f});
        const auto d = b.finish().value();
        check_same(d);
        CHECK(round_trip(d).to_text() == d.to_text());
    }
}

TEST_CASE("marks of pure ops are read as they were written")
{
    for (const bool marked : {false, true}) {
        plan_builder b("p");
        const auto x = b.input<float>(4);
        const auto y = b.output<float>(4);
        b.add(memory::copy<float>{.src = x, .dst = y});
        const auto op = plugin::call("twice", inout(y));
        if (marked)
            b.add(pure(op));
        else
            b.add(op);
        const auto d = b.finish().value();
        CHECK(d.repeatable() == marked);
        check_same(d);
        CHECK(round_trip(d).repeatable() == marked);
    }
}

TEST_CASE("a file that was read can be written again, and is the same")
{
    for (const auto& d : {test::varied_plan(), kernel_plan(make_kernel(), make_kernel("other"))}) {
        const auto first = test::file_of(d);
        CHECK((test::file_of(read_file(first).value()) == first));
    }
}

TEST_CASE("a field that a file does not contain has its default value")
{
    plan_builder b;
    const auto x = b.input<float>(2);
    const auto s = b.state<float>(2);
    b.add(blas::axpy<float>{.x = x, .y = s, .n = 2, .alpha = 3, .incx = 1});
    const auto plan = b.finish().value();
    auto file = test::file_of(plan);
    // Removes "alpha": kind, length of the name, name, type, number.
    const auto at = test::find_in_description(file, "alpha");
    REQUIRE(at < file.size());
    const auto begin = file.begin() + long(at) - 3;
    file.erase(begin, begin + 3 + 5 + 1 + 4);
    auto h = test::header_of(file);
    h.description_bytes -= 13;
    std::memcpy(file.data(), &h, sizeof(h));
    test::seal(file);
    const auto made = read_file(file);
    REQUIRE_MESSAGE(made, made.error().message());
    plan_builder with_default;
    const auto x1 = with_default.input<float>(2);
    with_default.add(blas::axpy<float>{.x = x1, .y = with_default.state<float>(2), .n = 2});
    CHECK(made.value() == with_default.finish().value());
}

TEST_CASE("constants are mapped, not copied, for as long as the plan exists")
{
    const test::temporary_folder folder;
    const auto path = folder / "large.plan";
    {
        plan_builder b("large");
        const auto w = b.constant<float>(std::vector<float>(1 << 20, 1.5f));
        const auto v = b.constant<float>(std::vector<float>(1 << 20, 2.5f));
        const auto s = b.state<float>(std::vector<float>(1 << 10, 3.5f));
        const auto y = b.output<float>(1 << 20);
        b.add(memory::copy<float>{w, y});
        b.add(blas::axpy<float>{.x = v, .y = y, .n = 1 << 20});
        b.add(blas::axpy<float>{.x = v.first(1 << 10), .y = s, .n = 1 << 10});
        REQUIRE(b.finish().value().save(path));
    }
    for (const auto check : {content_check::hash, content_check::none}) {
        auto made = plan_description::load(path, check);
        REQUIRE_MESSAGE(made, made.error().message());
        const auto mapped = test::mappings_of(path);
        REQUIRE(mapped.size() == 1);
        const auto& data = *detail::plan_access::data(made.value());
        for (const auto& contents : {data.constant_contents, data.state_contents})
            for (const auto& c : contents) {
                const auto at = reinterpret_cast<std::uintptr_t>(c.data.get());
                CHECK(at >= mapped[0].first);
                CHECK(at + c.bytes <= mapped[0].second);
                CHECK(at % detail::content_alignment == 0);
            }
        CHECK(reinterpret_cast<const float*>(data.constant_contents[1].data.get())[12345] == 2.5f);
        // The file may be replaced and removed meanwhile.
        REQUIRE(test::axpy_plan().save(folder / "other.plan"));
        made = errc::no_value;
        CHECK(test::mappings_of(path).empty());
    }
}

TEST_CASE("a plan can be saved over the file that it was loaded from")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    REQUIRE(test::axpy_plan().save(path));
    auto first = plan_description::load(path);
    REQUIRE(first);
    REQUIRE(first.value().save(path));
    REQUIRE(test::counting_plan().save(path));
    CHECK(first.value() == test::axpy_plan());
    CHECK(test::file_of(first.value()) == test::file_of(test::axpy_plan()));
    const auto second = plan_description::load(path);
    REQUIRE(second);
    CHECK(second.value() == test::counting_plan());
}

TEST_SUITE_END();

} // namespace

} // namespace test_plan_file_round_trip
