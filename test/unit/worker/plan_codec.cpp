#include "worker/protocol/plan_codec.hpp"

#include "../jit/support.hpp"
#include "mutator.hpp"
#include "plan_samples.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/core/tune.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>
#include <coaccel/ops/plugin.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

namespace test_worker_plan_codec {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::plan_data;
using test::encoded;

/// The kernels of another process.
class some_kernels final : public kernel_source {
public:
    std::shared_ptr<const jit::image> find(std::uint64_t id) const noexcept override
    {
        const auto found = all.find(id);
        return found == all.end() ? nullptr : found->second;
    }

    std::map<std::uint64_t, std::shared_ptr<const jit::image>> all;
};

decoded_plan decode(const std::vector<std::byte>& bytes)
{
    const test::no_kernels none;
    return decode_plan(bytes, test::sample_environment(none));
}

const any_ref& ref_of(const detail::listed_op& o, std::size_t operand)
{
    return *reinterpret_cast<const any_ref*>(reinterpret_cast<const std::byte*>(o.record.op.data()) +
                                             o.info->operands[operand].offset);
}

any_ref& ref_of(detail::listed_op& o, std::size_t operand)
{
    return const_cast<any_ref&>(ref_of(std::as_const(o), operand));
}

void check_same(const plan_data& a, const plan_data& b)
{
    CHECK(a.name == b.name);
    CHECK(a.id == b.id);
    REQUIRE(a.slots.size() == b.slots.size());
    for (std::size_t i = 0; i < a.slots.size(); ++i) {
        CAPTURE(i);
        const auto &s = a.slots[i], &t = b.slots[i];
        CHECK(s.name == t.name);
        CHECK(s.kind == t.kind);
        CHECK(s.type == t.type);
        CHECK(s.count == t.count);
        CHECK(s.offset == t.offset);
        CHECK(s.index == t.index);
    }
    CHECK(a.inputs == b.inputs);
    CHECK(a.parameters == b.parameters);
    CHECK(a.bindings == b.bindings);
    CHECK(a.outputs == b.outputs);
    CHECK(a.constants == b.constants);
    CHECK(a.states == b.states);
    const auto same_contents = [](const auto& x, const auto& y) {
        REQUIRE(x.size() == y.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            CHECK(x[i].bytes == y[i].bytes);
            CHECK(x[i].id == y[i].id);
        }
    };
    same_contents(a.constant_contents, b.constant_contents);
    same_contents(a.state_contents, b.state_contents);
    CHECK(a.instance_bytes == b.instance_bytes);
    CHECK(a.staged_inputs.offset == b.staged_inputs.offset);
    CHECK(a.staged_inputs.bytes == b.staged_inputs.bytes);
    CHECK(a.staged_outputs.offset == b.staged_outputs.offset);
    CHECK(a.staged_outputs.bytes == b.staged_outputs.bytes);
    CHECK(a.unshared_scratch_bytes == b.unshared_scratch_bytes);
    REQUIRE(a.ops.size() == b.ops.size());
    for (std::size_t i = 0; i < a.ops.size(); ++i) {
        CAPTURE(i);
        REQUIRE(a.ops[i].info->id == b.ops[i].info->id);
        REQUIRE(a.ops[i].info->operands.size() == b.ops[i].info->operands.size());
        for (std::size_t n = 0; n < a.ops[i].info->operands.size(); ++n)
            CHECK(ref_of(a.ops[i], n) == ref_of(b.ops[i], n));
    }
}

/// A plan with a launch and a call of a plug-in.
plan_data packed_plan(const jit::kernel& k)
{
    plan_builder b("packed");
    const auto x = b.input<float>(8);
    const auto y = b.output<float>(8);
    b.add(jit::launch(k, {{2}, {3}}, in<float>(x), out<float>(y), 1.5f));
    b.add(plugin::call("scale", in<float>(x), out<float>(y), true));
    return *detail::plan_access::data(b.finish().value());
}

/// Its symbol does not say what arguments it takes.
jit::kernel parameters_kernel()
{
    return test::make_kernel(jit::compile_options("parameters"), "parameters", "code");
}

jit::kernel scale_kernel()
{
    return test::make_kernel(jit::compile_options("scale"), "_Z5scalePKfPff", "code");
}

} // namespace

TEST_SUITE_BEGIN("plan_codec");

TEST_CASE("a plan is decoded to what was encoded, without its contents")
{
    const auto plan = test::sample_plan();
    const auto got = decode(encoded(*plan));
    REQUIRE(got.status == plan_status::complete);
    CHECK_FALSE(got.why);
    check_same(*plan, got.plan);
    CHECK(encoded(got.plan) == encoded(*plan));
    CHECK(got.plan.constant_contents[0].data == nullptr);
    CHECK(got.plan.states.size() == 2);
}

TEST_CASE("a plan with parameters is decoded with the same fields and slots")
{
    const auto k = parameters_kernel();
    some_kernels kernels;
    kernels.all[k.id()] = k.native();
    const auto plan = test::sample_parameters(k);
    REQUIRE(plan->bindings.size() == 4);
    const auto got = decode_plan(encoded(*plan), test::sample_environment(kernels));
    REQUIRE_MESSAGE(got.status == plan_status::complete, got.why.message());
    check_same(*plan, got.plan);
    for (const auto& b : plan->bindings) {
        const op_field &f = plan->ops[b.op].info->fields[b.field], &g = got.plan.ops[b.op].info->fields[b.field];
        CHECK(f.name == g.name);
        CHECK(f.offset == g.offset);
        CHECK(f.size == g.size);
        CHECK(f.type == g.type);
        CHECK(f.variable == g.variable);
    }
}

TEST_CASE("operands without a buffer are decoded as what they are")
{
    const auto plan = test::sample_optional();
    const auto got = decode(encoded(*plan));
    REQUIRE_MESSAGE(got.status == plan_status::complete, got.why.message());
    check_same(*plan, got.plan);
    CHECK(encoded(got.plan) == encoded(*plan));
    CHECK(got.plan.ops[0].info == &info_of<blas::matmul<float>>());
    CHECK(ref_of(got.plan.ops[0], 3).is_none());
    CHECK_FALSE(ref_of(got.plan.ops[0], 4).is_none());
    CHECK(ref_of(got.plan.ops[1], 2).is_none());
}

TEST_CASE("invalid refs of optional operands are malformed")
{
    struct wrong {
        const char* what;
        void (*change)(plan_data&);
        const char* says;
    };
    // Of the product: a, b, d, c, bias.
    static constexpr wrong all[] = {
        {"an absent operand of another type", [](plan_data& p) { ref_of(p.ops[0], 3).type = dtype::f64; },
         "op 1 (blas.matmul<f32 from f32>): c has another element type"},
        {"an empty ref", [](plan_data& p) { ref_of(p.ops[0], 4) = {.type = dtype::f32}; }, "bias names no slot"},
        {"a ref to a buffer", [](plan_data& p) { ref_of(p.ops[0], 3).device = 7; }, "c names no slot"},
        {"a slot that there is not", [](plan_data& p) { ref_of(p.ops[0], 3).device = detail::plan_device; },
         "c names no slot"},
        {"a slot of another type", [](plan_data& p) { ref_of(p.ops[0], 4).type = dtype::f16; },
         "bias has another element type"},
        {"a ref that is too long", [](plan_data& p) { ref_of(p.ops[0], 4).size = 5; }, "beyond its slot"},
        {"a bias in the result", [](plan_data& p) { ref_of(p.ops[0], 4).slot = ref_of(p.ops[0], 2).slot; },
         "d and bias overlap"},
        {"an operand that every op has", [](plan_data& p) { ref_of(p.ops[0], 0) = ref_of(p.ops[0], 3); },
         "a names no slot"},
        {"a result that every op has", [](plan_data& p) { ref_of(p.ops[0], 2) = ref_of(p.ops[0], 3); },
         "d names no slot"},
        {"results of a list that overlap", [](plan_data& p) { ref_of(p.ops[1], 65) = ref_of(p.ops[1], 64); },
         "c[0] and c[1] overlap"},
    };
    for (const auto& w : all) {
        INFO(std::string(w.what));
        plan_data p = *test::sample_optional();
        w.change(p);
        const auto got = decode(encoded(p));
        CHECK(got.status == plan_status::malformed);
        const auto text = got.why.message();
        INFO(text);
        CHECK(text.find(w.says) != text.npos);
    }
    // A list without an operand of one of its products is a caller's mistake.
    plan_data p = *test::sample_optional();
    ref_of(p.ops[1], 0) = ref_of(p.ops[1], 2);
    const auto got = decode(encoded(p));
    CHECK(got.status == plan_status::refused);
    CHECK(got.why.message() == "blas.gemm_batched: a[0] has no buffer");
}

TEST_CASE("parameters that do not match their fields are malformed")
{
    const auto k = parameters_kernel();
    some_kernels kernels;
    kernels.all[k.id()] = k.native();
    const auto here = test::sample_environment(kernels);
    const auto plan = test::sample_parameters(k);
    // Of gemv: alpha and beta. Of the launch: its two numbers.
    struct wrong {
        const char* what;
        void (*change)(plan_data&);
        const char* says;
    };
    static constexpr wrong all[] = {
        {"an op that there is not", [](plan_data& p) { p.bindings[3].op = 9; }, "value 3"},
        {"a field that there is not", [](plan_data& p) { p.bindings[0].field = 99; }, "value 0"},
        {"a slot that there is not", [](plan_data& p) { p.bindings[0].slot = 99; }, "value 0"},
        {"a field that cannot be a parameter", [](plan_data& p) { p.bindings[0].field = 3; }, "value 0"},
        {"an operand", [](plan_data& p) { p.bindings[2].field = 0; }, "value 2"},
        {"a slot of another type", [](plan_data& p) { p.bindings[2].slot = p.bindings[3].slot; }, "value 2"},
        {"an input", [](plan_data& p) { p.bindings[0].slot = p.inputs[0]; }, "value 0"},
        {"a constant for an argument", [](plan_data& p) { p.bindings[2].slot = p.bindings[1].slot; }, "value 2"},
        {"a field twice", [](plan_data& p) { p.bindings[1].field = p.bindings[0].field; }, "value 1"},
        {"ops in another order", [](plan_data& p) { std::swap(p.bindings[0], p.bindings[2]); }, "value 1"},
        {"a factor without a slot", [](plan_data& p) { p.bindings.erase(p.bindings.begin()); },
         "op 2 (blas.gemv<f32>)"},
        {"a parameter outside the staged inputs", [](plan_data& p) { p.staged_inputs.bytes = 4; }, "is a parameter"},
        {"a parameter of two elements", [](plan_data& p) { p.slots[p.parameters[0]].count = 2; }, "is a parameter"},
    };
    for (const auto& w : all) {
        INFO(std::string(w.what));
        plan_data p = *plan;
        w.change(p);
        const auto got = decode_plan(encoded(p), here);
        CHECK(got.status == plan_status::malformed);
        const auto text = got.why.message();
        INFO(text);
        CHECK(text.find(w.says) != text.npos);
    }
}

TEST_CASE("a number of a launch that shares memory with the rest of the op cannot be a parameter")
{
    const auto k = parameters_kernel();
    some_kernels kernels;
    kernels.all[k.id()] = k.native();
    const auto plan = test::sample_parameters(k);
    const auto& info = *plan->ops[2].info;
    for (const std::uint32_t offset : {0u, std::uint32_t(sizeof(jit::launch_head)), info.operands[0].offset}) {
        CAPTURE(offset);
        plan_data p = *plan;
        auto& head = *reinterpret_cast<jit::launch_head*>(p.ops[2].record.op.data());
        const_cast<jit::launch_argument&>(head.arguments()[2]).offset = static_cast<std::uint16_t>(offset);
        CHECK(decode_plan(encoded(p), test::sample_environment(kernels)).status == plan_status::malformed);
    }
}

TEST_CASE("an empty plan is a plan")
{
    const auto got = decode(encoded({}));
    REQUIRE(got.status == plan_status::complete);
    CHECK(got.plan.slots.empty());
    CHECK(got.plan.ops.empty());
}

TEST_CASE("a launch gets the kernel of this process, and keeps it and its description")
{
    const auto k = scale_kernel();
    const auto plan = packed_plan(k);
    some_kernels kernels;
    std::weak_ptr<const jit::image> image;
    {
        const auto here = scale_kernel();
        kernels.all[k.id()] = here.native();
        image = here.native();
    }
    std::optional<decoded_plan> got = decode_plan(encoded(plan), test::sample_environment(kernels));
    // The function of the call exists in no plug-in of this process.
    REQUIRE(got->status == plan_status::refused);
    CHECK(got->why == errc::function_missing);

    plan_data only_launch = plan;
    only_launch.ops.pop_back();
    got = decode_plan(encoded(only_launch), test::sample_environment(kernels));
    REQUIRE(got->status == plan_status::complete);
    kernels.all.clear();
    plan_data copy = got->plan;
    got.reset();
    CHECK_FALSE(image.expired());
    REQUIRE(copy.ops.size() == 1);
    const auto& head = *reinterpret_cast<const jit::launch_head*>(copy.ops[0].record.op.data());
    CHECK(head.kernel == image.lock()->id);
    CHECK(head.kernel != k.id());
    CHECK(head.host == 0);
    CHECK(copy.ops[0].info->name == "jit.launch");
    CHECK(copy.ops[0].info->operands.size() == 2);
    copy = {};
    CHECK(image.expired());
}

TEST_CASE("a plan with a kernel or an op that this process lacks is refused, with the name of the op")
{
    const auto missing = decode(encoded(packed_plan(scale_kernel())));
    CHECK(missing.status == plan_status::refused);
    CHECK(missing.why == errc::invalid_argument);

    const test::no_kernels none;
    plan_environment nothing = test::sample_environment(none);
    nothing.describe = [](std::uint64_t) { return nullptr; };
    const auto unknown = decode_plan(encoded(*test::sample_plan()), nothing);
    CHECK(unknown.status == plan_status::refused);
    CHECK(unknown.why == errc::unsupported_op);
    CHECK(unknown.why.message() == "memory.copy<f32>: the sample backend does not implement it");
}

TEST_CASE("an op whose own check fails is refused")
{
    plan_data p = *test::sample_plan();
    reinterpret_cast<blas::axpy<float>*>(p.ops[1].record.op.data())->n = 5;
    const auto got = decode(encoded(p));
    CHECK(got.status == plan_status::refused);
    CHECK(got.why == errc::out_of_bounds);
}

TEST_CASE("an invalid plan is malformed, and the message says why")
{
    struct wrong {
        const char* what;
        void (*change)(plan_data&);
        const char* says;
    };
    constexpr auto huge = ~std::uint64_t(0);
    static constexpr wrong all[] = {
        {"an empty slot", [](plan_data& p) { p.slots[3].count = 0; }, "slot 3 has 0 elements"},
        {"a slot whose size overflows", [](plan_data& p) { p.slots[3].count = std::uint64_t(1) << 62; }, "slot 3 has"},
        {"a slot that is unaligned", [](plan_data& p) { p.slots[0].offset = 4; }, "slot 0 at 4"},
        {"a slot behind the instance", [](plan_data& p) { p.slots[3].offset = p.instance_bytes; }, "slot 3 at"},
        {"a slot far behind the instance", [](plan_data& p) { p.slots[3].offset = huge - 255; }, "slot 3 at"},
        {"a slot across the end of the instance", [](plan_data& p) { p.slots[3].count = 1000; }, "slot 3 at"},
        {"a huge instance", [](plan_data& p) { p.instance_bytes = huge; }, "an instance has"},
        {"a kind that there is not", [](plan_data& p) { p.slots[0].kind = slot_kind(6); }, "invalid"},
        {"a type that there is not", [](plan_data& p) { p.slots[0].type = dtype(99); }, "invalid"},
        {"staged inputs behind the instance", [](plan_data& p) { p.staged_inputs = {p.instance_bytes, 1}; }, "staged"},
        {"staged outputs that are too large", [](plan_data& p) { p.staged_outputs.bytes = huge; }, "staged"},
        {"content of another size", [](plan_data& p) { p.constant_contents[0].bytes = 4; }, "the content of slot 2"},
        {"an initial state of another size", [](plan_data& p) { p.state_contents[1].bytes = 4; },
         "the content of slot 6"},
        {"a ref to a buffer", [](plan_data& p) { ref_of(p.ops[0], 0).device = 7; }, "op 1 (memory.copy<f32>): src"},
        {"a ref of a builder", [](plan_data& p) { ref_of(p.ops[0], 0).generation = 1; }, "names no slot"},
        {"a slot that there is not", [](plan_data& p) { ref_of(p.ops[0], 0).slot = 8; }, "names no slot"},
        {"another type", [](plan_data& p) { ref_of(p.ops[0], 0).type = dtype::f64; }, "element type"},
        {"a slot of another type", [](plan_data& p) { p.slots[2].type = dtype::i32; }, "element type"},
        {"a ref that is too long", [](plan_data& p) { ref_of(p.ops[0], 0).size = 5; }, "beyond its slot"},
        {"a ref that begins too late", [](plan_data& p) { ref_of(p.ops[0], 0).offset = 5; }, "beyond its slot"},
        {"a ref whose end overflows", [](plan_data& p) { ref_of(p.ops[0], 0).offset = huge - 1; }, "beyond its slot"},
        {"a ref far outside", [](plan_data& p) { ref_of(p.ops[0], 0).offset = any_ref::invalid_offset; },
         "beyond its slot"},
        {"an op that writes a constant", [](plan_data& p) { ref_of(p.ops[0], 1).slot = 2; }, "is a constant"},
        {"operands in one slot", [](plan_data& p) { ref_of(p.ops[2], 0).slot = 4; }, "overlap"},
        {"slots of one op that share memory", [](plan_data& p) { p.slots[4].offset = p.slots[3].offset; }, "overlap"},
        {"an op of another name",
         [](plan_data& p) {
             static op_info other = info_of<memory::copy<float>>();
             other.name = "memory.move<f32>";
             p.ops[0].info = &other;
         },
         "another name"},
        {"an op of another size",
         [](plan_data& p) {
             static op_info other = info_of<memory::copy<float>>();
             other.size -= 8;
             p.ops[0].info = &other;
         },
         "bytes"},
        {"an op whose result is not stored",
         [](plan_data& p) {
             p.ops[6].info = &info_of<blas::dot<float>>();
             p.ops[6].record.assign(info_of<blas::dot<float>>(), p.ops[6].record.op.data());
         },
         "cannot be in a plan"},
        {"a run of a plan",
         [](plan_data& p) {
             const detail::plan_run_op run{};
             p.ops[0].info = &info_of<detail::plan_run_op>();
             p.ops[0].record.assign(*p.ops[0].info, &run);
         },
         "cannot be in a plan"},
    };
    for (const auto& w : all) {
        INFO(std::string(w.what));
        plan_data p = *test::sample_plan();
        w.change(p);
        const auto got = decode(encoded(p));
        CHECK(got.status == plan_status::malformed);
        CHECK(got.why == errc::invalid_argument);
        const auto text = got.why.message();
        INFO(text);
        CHECK(text.find(w.says) != text.npos);
        CHECK(got.plan.ops.empty());
        CHECK(got.plan.slots.empty());
    }
}

TEST_CASE("bytes that are cut off, or followed by others, are malformed")
{
    const auto whole = encoded(*test::sample_plan());
    for (std::size_t n = 0; n < whole.size(); ++n) {
        CAPTURE(n);
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
        REQUIRE(decode(cut).status == plan_status::malformed);
    }
    auto longer = whole;
    longer.push_back(std::byte{0});
    CHECK(decode(longer).status == plan_status::malformed);
    auto newer = whole;
    newer[0] = std::byte{3};
    CHECK(decode(newer).why.message().find("version") != std::string::npos);
}

TEST_CASE("too many slots or ops are refused before they are read")
{
    encoder out;
    encode_plan(out, {});
    std::vector<std::byte> bytes(out.record().begin(), out.record().end());
    // The version, an empty name and the id precede the number of slots; the number of ops and that of the
    // parameter values are at the end.
    const std::uint32_t many = 65536;
    auto slots = bytes;
    std::memcpy(slots.data() + 2 + 2 + 16, &many, sizeof(many));
    CHECK(decode(slots).why.message().find("65536 slots") != std::string::npos);
    auto ops = bytes;
    std::memcpy(ops.data() + ops.size() - 2 * sizeof(many), &many, sizeof(many));
    CHECK(decode(ops).why.message().find("65536 ops") != std::string::npos);
}

TEST_CASE("user functions, transfers, and ops that only have a reply cannot be in a plan of a worker")
{
    CHECK_FALSE(check_plan_op(info_of<blas::axpy<float>>()));
    op_info user;
    user.name = "user.submit";
    user.id = detail::user_op_id;
    CHECK(check_plan_op(user) == errc::not_isolatable);
    CHECK(check_plan_op(user).message().starts_with("user.submit: the function is code of this process"));
    CHECK(check_plan_op(info_of<detail::write_op<float>>()) == errc::not_isolatable);
    CHECK(check_plan_op(info_of<detail::plan_unload_op>()) == errc::not_isolatable);
    CHECK_FALSE(check_plan_op(info_of<blas::matmul<float>>()));
    for (const op_info* info :
         {&info_of<jit::occupancy_op>(), &info_of<tune<blas::matmul<float>>>(), &info_of<blas::dot<float>>()}) {
        CHECK(check_plan_op(*info) == errc::not_isolatable);
        CHECK(check_plan_op(*info).message() == info->name + ": nothing receives its reply in a plan");
    }
}

TEST_CASE("a measurement is malformed as an op of a plan, although its worker can run it")
{
    using measured = tune<blas::matmul<float>>;
    plan_data p = *test::sample_optional();
    REQUIRE(p.ops[0].info == &info_of<blas::matmul<float>>());
    static_assert(sizeof(measured) == sizeof(blas::matmul<float>));
    p.ops[0].info = &info_of<measured>();
    const test::no_kernels none;
    auto here = test::sample_environment(none);
    here.describe = [](std::uint64_t id) {
        return id == info_of<measured>().id ? &info_of<measured>() : test::describe_sample_op(id);
    };
    const auto got = decode_plan(encoded(p), here);
    CHECK(got.status == plan_status::malformed);
    CHECK(got.why.message() == "plan: op 1 (blas.matmul<f32 from f32> tuned): it cannot be in a plan");
}

TEST_CASE("mutated plans are decoded to what they say, or refused")
{
    const auto k = scale_kernel();
    some_kernels kernels;
    kernels.all[k.id()] = k.native();
    const auto other = parameters_kernel();
    kernels.all[other.id()] = other.native();
    const auto here = test::sample_environment(kernels);
    plan_data launch = packed_plan(k);
    launch.ops.pop_back();
    const std::vector<test::bytes> seeds{encoded(*test::sample_plan()), encoded(launch), encoded({}),
                                         encoded(*test::sample_parameters(other)), encoded(*test::sample_optional())};
    const auto end = std::chrono::steady_clock::now() + test::fuzz_time(8);
    test::generator random(1);
    std::uint64_t complete = 0, refused = 0, malformed = 0;
    while (std::chrono::steady_clock::now() < end)
        for (int i = 0; i < 200; ++i) {
            const test::bytes r = test::mutated(seeds[random() % seeds.size()], random, seeds);
            const auto got = decode_plan(r, here);
            if (got.status != plan_status::complete) {
                REQUIRE(got.why);
                ++(got.status == plan_status::refused ? refused : malformed);
                continue;
            }
            ++complete;
            for (const auto& o : got.plan.ops)
                for (std::size_t n = 0; n < o.info->operands.size(); ++n) {
                    const any_ref& ref = ref_of(o, n);
                    if (o.info->operands[n].optional && ref.is_none()) {
                        REQUIRE(ref.type == o.info->operands[n].type);
                        continue;
                    }
                    REQUIRE(ref.slot < got.plan.slots.size());
                    const auto& s = got.plan.slots[ref.slot];
                    REQUIRE(ref.offset + ref.size <= s.count);
                    REQUIRE((!s.in_instance() || s.offset + s.bytes() <= got.plan.instance_bytes));
                }
            for (const auto& b : got.plan.bindings) {
                const op_field& f = got.plan.ops.at(b.op).info->fields.at(b.field);
                REQUIRE(f.offset + f.size <= got.plan.ops[b.op].info->size);
                REQUIRE(got.plan.slots.at(b.slot).bytes() == f.size);
            }
        }
    MESSAGE("complete ", complete, ", refused ", refused, ", malformed ", malformed);
    CHECK(complete > 0);
    CHECK(refused > 0);
    CHECK(malformed > 0);
}

TEST_SUITE_END();

} // namespace test_worker_plan_codec
