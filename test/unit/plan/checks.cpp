#include "jit/image.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/ops/rand.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace test_plan_checks {

namespace {

using namespace coaccel;

struct refusal {
    const char* name;
    void (*build)(plan_builder& b);
    errc what;
    const char* message;
};

/// Writes the only output of a plan, so that nothing else is wrong with it.
void write_output(plan_builder& b)
{
    b.add(memory::fill<float>{.dst = b.output<float>(4)});
}

ref<float> device_buffer()
{
    return ref<float>::from_raw(
        {.device = 1, .generation = 1, .slot = 0, .version = 1, .offset = 0, .size = 4, .type = dtype::f32});
}

jit::kernel make_kernel()
{
    return jit::make_kernel(jit::compile_options("scale"), {"_Z5scalePKfPff", "code", {}}).value();
}

const refusal refusals[] = {
    {"no ops", [](plan_builder& b) { b.output<float>(4); }, errc::invalid_argument, "plan p: it has no ops"},
    {"no effect", [](plan_builder& b) { b.add(memory::fill<float>{.dst = b.scratch<float>(4)}); },
     errc::invalid_argument, "plan p: it has no outputs and no states, so it has no effect"},
    {"an input of no elements", [](plan_builder& b) { b.input<float>(0); }, errc::invalid_argument,
     "plan p: input1: count is 0"},
    {"a named slot of no elements", [](plan_builder& b) { b.scratch<float>(0, "hidden"); }, errc::invalid_argument,
     "plan p: hidden: count is 0"},
    {"a constant of no elements", [](plan_builder& b) { b.constant<float>(std::vector<float>()); },
     errc::invalid_argument, "plan p: constant1: count is 0"},
    {"a constant of no elements with an owner",
     [](plan_builder& b) { b.constant<float>(std::span<const float>(), nullptr, "w"); }, errc::invalid_argument,
     "plan p: w: count is 0"},
    {"a state of no elements", [](plan_builder& b) { b.state<float>(std::vector<float>()); }, errc::invalid_argument,
     "plan p: state1: count is 0"},
    {"a size that overflows", [](plan_builder& b) { b.output<double>(std::uint64_t(1) << 61); }, errc::size_overflow,
     "plan p: output1: count is 2305843009213693952, too many elements of 8 bytes"},
    {"half the address space", [](plan_builder& b) { b.output<double>(std::uint64_t(1) << 60); }, errc::size_overflow,
     "plan p: output1: count is 1152921504606846976, too many elements of 8 bytes"},
    {"the first of several problems",
     [](plan_builder& b) {
         b.input<float>(0);
         b.state<float>(0);
         b.add(memory::fill<float>{});
     },
     errc::invalid_argument, "plan p: input1: count is 0"},
    {"slots that overflow together",
     [](plan_builder& b) {
         write_output(b);
         b.scratch<std::uint8_t>((std::uint64_t(1) << 63) - 1);
     },
     errc::size_overflow, "plan p: its slots need 2^63 bytes or more"},
    {"too many slots",
     [](plan_builder& b) {
         for (std::size_t i = 0; i <= plan_builder::max_slots; ++i)
             b.input<float>(1);
     },
     errc::invalid_argument, "plan p: input65536: a plan has at most 65535 slots"},
    {"too many ops",
     [](plan_builder& b) {
         const auto y = b.output<float>(4);
         for (std::size_t i = 0; i <= plan_builder::max_ops; ++i)
             b.add(memory::fill<float>{.dst = y});
     },
     errc::invalid_argument, "plan p: op 65536 (memory.fill<f32>): a plan has at most 65535 ops"},
    {"an op of which only the reply matters",
     [](plan_builder& b) {
         write_output(b);
         b.add(blas::iamax<float>{.x = b.input<float>(4), .n = 4});
     },
     errc::invalid_argument,
     "plan p: op 2 (blas.iamax<f32>): its reply is its only effect, but a plan returns no replies"},
    {"a default ref",
     [](plan_builder& b) {
         write_output(b);
         b.add(memory::fill<float>{});
     },
     errc::invalid_argument, "plan p: op 2 (memory.fill<f32>): dst names no slot"},
    {"a buffer of a device",
     [](plan_builder& b) {
         write_output(b);
         b.add(memory::copy<float>{.src = device_buffer(), .dst = b.scratch<float>(4)});
     },
     errc::invalid_argument,
     "plan p: op 2 (memory.copy<f32>): src names a buffer of a device, but a plan has only slots"},
    {"a slot of another builder",
     [](plan_builder& b) {
         plan_builder other;
         b.output<float>(4);
         b.add(memory::fill<float>{.dst = other.output<float>(4)});
     },
     errc::invalid_argument, "plan p: op 1 (memory.fill<f32>): dst names a slot of another builder"},
    {"a slot that does not exist",
     [](plan_builder& b) {
         auto raw = b.output<float>(4).raw();
         raw.slot = 1;
         b.add(memory::fill<float>{.dst = ref<float>::from_raw(raw)});
     },
     errc::invalid_argument, "plan p: op 1 (memory.fill<f32>): dst names a slot of another builder"},
    {"a slot of another type",
     [](plan_builder& b) { b.add(memory::fill<float>{.dst = ref<float>::from_raw(b.output<double>(4).raw())}); },
     errc::wrong_dtype, "plan p: op 1 (memory.fill<f32>): dst takes f32, output1 holds f64"},
    {"a ref of another type",
     [](plan_builder& b) {
         auto raw = b.output<float>(4).raw();
         raw.type = dtype::f64;
         b.add(memory::fill<float>{.dst = ref<float>::from_raw(raw)});
     },
     errc::wrong_dtype, "plan p: op 1 (memory.fill<f32>): dst takes f32, given a ref of f64 to output1"},
    {"a subspan outside its ref",
     [](plan_builder& b) { b.add(memory::fill<float>{.dst = b.output<float>(4).subspan(2, 3)}); }, errc::out_of_bounds,
     "plan p: op 1 (memory.fill<f32>): dst is a subspan of 3 elements outside its ref to output1"},
    {"a ref outside its slot",
     [](plan_builder& b) {
         auto raw = b.output<float>(4).raw();
         raw.offset = 1;
         b.add(memory::fill<float>{.dst = ref<float>::from_raw(raw)});
     },
     errc::out_of_bounds, "plan p: op 1 (memory.fill<f32>): dst names 4 elements from 1 on, output1 has 4"},
    {"an offset outside its slot",
     [](plan_builder& b) {
         auto raw = b.output<float>(4).raw();
         raw.offset = 5;
         raw.size = 0;
         b.add(memory::fill<float>{.dst = ref<float>::from_raw(raw)});
     },
     errc::out_of_bounds, "plan p: op 1 (memory.fill<f32>): dst names 0 elements from 5 on, output1 has 4"},
    {"the op's own check",
     [](plan_builder& b) {
         b.add(blas::gemv<float>{
             .a = b.input<float>(4), .x = b.input<float>(2), .y = b.output<float>(2), .m = 2, .n = 3});
     },
     errc::out_of_bounds, "plan p: op 1 (blas.gemv<f32>): a has 4 elements, needs 6"},
    {"the check of an op whose reply is stored",
     [](plan_builder& b) {
         const auto x = b.input<float>(4);
         b.add(store_reply(blas::dot<float>{.x = x, .y = x}, b.output<float>(1)));
     },
     errc::invalid_argument, "plan p: op 1 (blas.dot<f32> stored): n is 0"},
    {"the check of a launch",
     [](plan_builder& b) {
         const auto k = make_kernel();
         b.add(jit::launch(k, {}, in(b.input<float>(4)), out(b.output<float>(4))));
     },
     errc::argument_mismatch, "plan p: op 1 (jit.launch): scale: the kernel takes 3 arguments, given 2"},
    {"an empty kernel", [](plan_builder& b) { b.add(jit::launch(jit::kernel(), {}, out(b.output<float>(4)))); },
     errc::invalid_argument,
     "plan p: op 1 (jit.launch): the kernel was never compiled, or no copy of it is left; keep one until the op is "
     "given to the device"},
    {"a function without a name", [](plan_builder& b) { b.add(plugin::call("", out(b.output<float>(4)))); },
     errc::invalid_argument, "plan p: op 1 (plugin.call): the name of the function is empty"},
    {"an empty generator", [](plan_builder& b) { b.add(rand::uniform<float>{.dst = b.output<float>(4), .from = {}}); },
     errc::invalid_argument,
     "plan p: op 1 (rand.uniform<f32>): from is an empty generator; make one with rand::make_generator"},
    {"an operand that overlaps a result",
     [](plan_builder& b) {
         const auto y = b.output<float>(6);
         b.add(memory::fill<float>{.dst = y});
         b.add(memory::copy<float>{.src = y.first(4), .dst = y.subspan(2, 4)});
     },
     errc::overlap, "plan p: op 2 (memory.copy<f32>): src and dst overlap in output1 [2, 4)"},
    {"vectors with a common element",
     [](plan_builder& b) {
         const auto y = b.state<float>(6);
         b.add(blas::axpy<float>{.x = y.first(4), .y = y.subspan(2, 4), .n = 4});
     },
     errc::overlap, "plan p: op 1 (blas.axpy<f32>): x and y have an element in common"},
    {"a written input",
     [](plan_builder& b) {
         write_output(b);
         b.add(memory::fill<float>{.dst = b.input<float>(4)});
     },
     errc::invalid_argument, "plan p: op 2 (memory.fill<f32>): dst writes input1, which is an input"},
    {"a changed constant",
     [](plan_builder& b) {
         write_output(b);
         b.add(blas::scal<float>{.x = b.constant<float>(std::vector<float>(4), "table"), .n = 4});
     },
     errc::invalid_argument, "plan p: op 2 (blas.scal<f32>): x writes table, which is a constant"},
    {"scratch that is never written",
     [](plan_builder& b) { b.add(memory::copy<float>{.src = b.scratch<float>(4), .dst = b.output<float>(4)}); },
     errc::invalid_argument,
     "plan p: op 1 (memory.copy<f32>): src reads scratch1 [0, 4), which no earlier op has written"},
    {"scratch that is written later",
     [](plan_builder& b) {
         const auto h = b.scratch<float>(4);
         b.add(memory::copy<float>{.src = h, .dst = b.output<float>(4)});
         b.add(memory::fill<float>{.dst = h});
     },
     errc::invalid_argument,
     "plan p: op 1 (memory.copy<f32>): src reads scratch1 [0, 4), which no earlier op has written"},
    {"scratch of which the second half is not written",
     [](plan_builder& b) {
         const auto h = b.scratch<float>(1024);
         b.add(memory::fill<float>{.dst = h.first(512)});
         b.add(memory::copy<float>{.src = h, .dst = b.output<float>(1024)});
     },
     errc::invalid_argument,
     "plan p: op 2 (memory.copy<f32>): src reads scratch1 [512, 1024), which no earlier op has written"},
    {"scratch with a gap",
     [](plan_builder& b) {
         const auto h = b.scratch<float>(10, "h");
         b.add(memory::fill<float>{.dst = h.first(4)});
         b.add(memory::fill<float>{.dst = h.subspan(5, 5)});
         b.add(memory::copy<float>{.src = h.subspan(2, 6), .dst = b.output<float>(6)});
     },
     errc::invalid_argument, "plan p: op 3 (memory.copy<f32>): src reads h [4, 5), which no earlier op has written"},
    {"an output that is read first", [](plan_builder& b) { b.add(blas::scal<float>{.x = b.output<float>(4), .n = 4}); },
     errc::invalid_argument, "plan p: op 1 (blas.scal<f32>): x reads output1 [0, 4), which no earlier op has written"},
    {"a result that is added to unwritten memory",
     [](plan_builder& b) {
         const auto x = b.input<float>(2);
         b.add(blas::gemv<float>{.a = x, .x = x.first(1), .y = b.output<float>(2), .m = 2, .n = 1, .beta = 1});
     },
     errc::invalid_argument,
     "plan p: op 1 (blas.gemv<f32>): y is not completely overwritten, so it keeps or adds to output1 [0, 2), which no "
     "earlier op has written"},
    {"a result with increments, which keep the elements between them",
     [](plan_builder& b) {
         b.add(blas::copy<float>{.x = b.input<float>(2), .y = b.output<float>(3), .n = 2, .incy = 2});
     },
     errc::invalid_argument,
     "plan p: op 1 (blas.copy<f32>): y is not completely overwritten, so it keeps or adds to output1 [0, 3), which no "
     "earlier op has written"},
    {"a product that is smaller than its ref",
     [](plan_builder& b) {
         const auto x = b.input<float>(4);
         b.add(blas::gemm<float>{.a = x, .b = x, .c = b.output<float>(5), .m = 2, .n = 2, .k = 2});
     },
     errc::invalid_argument,
     "plan p: op 1 (blas.gemm<f32>): c is not completely overwritten, so it keeps or adds to output1 [0, 5), which no "
     "earlier op has written"},
    {"a batch with gaps between its products",
     [](plan_builder& b) {
         const auto x = b.input<float>(4);
         b.add(blas::gemm_strided_batched<float>{
             .a = x, .b = x, .c = b.output<float>(9), .m = 2, .n = 2, .k = 2, .batch = 2, .stride_c = 5});
     },
     errc::invalid_argument,
     "plan p: op 1 (blas.gemm_strided_batched<f32>): c is not completely overwritten, so it keeps or adds to output1 "
     "[0, 9), which no earlier op has written"},
    {"an output that is not written",
     [](plan_builder& b) {
         write_output(b);
         b.output<float>(10, "scores");
     },
     errc::invalid_argument, "plan p: no op writes scores [0, 10)"},
    {"an output that is written in part",
     [](plan_builder& b) { b.add(memory::fill<float>{.dst = b.output<float>(10).first(5)}); }, errc::invalid_argument,
     "plan p: no op writes output1 [5, 10)"},
};

struct acceptance {
    const char* name;
    void (*build)(plan_builder& b);
};

const acceptance acceptances[] = {
    {"only an output", write_output},
    {"only a state", [](plan_builder& b) { b.add(blas::scal<float>{.x = b.state<float>(4), .n = 4}); }},
    {"unused slots",
     [](plan_builder& b) {
         write_output(b);
         b.input<float>(1);
         b.constant<float>(std::vector<float>(1));
         b.scratch<float>(1);
         b.state<float>(1);
     }},
    {"scratch written in parts",
     [](plan_builder& b) {
         const auto h = b.scratch<float>(10);
         b.add(memory::fill<float>{.dst = h.subspan(4, 6)});
         b.add(memory::fill<float>{.dst = h.first(4)});
         b.add(memory::copy<float>{.src = h.subspan(1, 8), .dst = b.output<float>(8)});
     }},
    {"an output read after it was written",
     [](plan_builder& b) {
         const auto y = b.output<float>(4);
         b.add(memory::fill<float>{.dst = y});
         b.add(blas::scal<float>{.x = y, .n = 4});
     }},
    {"the same operand read twice",
     [](plan_builder& b) {
         const auto x = b.input<float>(4);
         b.add(store_reply(blas::dot<float>{.x = x, .y = x, .n = 4}, b.output<float>(1)));
     }},
    {"halves of one slot",
     [](plan_builder& b) {
         const auto y = b.output<float>(4);
         b.add(memory::fill<float>{.dst = y});
         b.add(memory::copy<float>{.src = y.first(2), .dst = y.subspan(2, 2)});
     }},
    {"interleaved vectors, which their op allows",
     [](plan_builder& b) {
         const auto s = b.state<float>(8);
         b.add(blas::swap<float>{.x = s, .y = s.subspan(1, 7), .n = 4, .incx = 2, .incy = 2});
     }},
    {"a product that overwrites its result",
     [](plan_builder& b) {
         const auto x = b.input<float>(4);
         const auto h = b.scratch<float>(4);
         b.add(blas::gemm<float>{.a = x, .b = x, .c = h, .m = 2, .n = 2, .k = 2, .ldc = 2});
         b.add(blas::gemv<float>{.a = h, .x = x.first(2), .y = b.output<float>(2), .m = 2, .n = 2, .incy = -1});
         b.add(blas::gemm_strided_batched<float>{
             .a = x, .b = x, .c = b.output<float>(8), .m = 2, .n = 2, .k = 2, .batch = 2, .stride_c = 4});
         b.add(blas::copy<float>{.x = x, .y = b.output<float>(4), .n = 4});
     }},
    {"a kernel of which only the plan keeps a copy",
     [](plan_builder& b) {
         b.add(jit::launch(make_kernel(), {}, in(b.input<float>(4)), out(b.output<float>(4)), 2.0f));
     }},
    {"a function of a plug-in that is not loaded here",
     [](plan_builder& b) { b.add(plugin::call("f", out(b.output<float>(4)))); }},
    {"random numbers, whose reply is not needed",
     [](plan_builder& b) { b.add(rand::uniform<float>{.dst = b.output<float>(4), .from = rand::make_generator()}); }},
};

} // namespace

TEST_SUITE_BEGIN("plan checks");

TEST_CASE("a wrong plan is refused with a message that names the plan, the op, the field and the slot")
{
    for (const auto& r : refusals) {
        CAPTURE(r.name);
        plan_builder b("p");
        r.build(b);
        const auto made = b.finish();
        REQUIRE(!made);
        CHECK(made.error() == r.what);
        CHECK(made.error().message() == r.message);
        CHECK(is_caller_error(made.error()));
    }
}

TEST_CASE("a valid plan is accepted")
{
    for (const auto& a : acceptances) {
        CAPTURE(a.name);
        plan_builder b;
        a.build(b);
        const auto made = b.finish();
        CHECK_MESSAGE(made.has_value(), (made ? std::string() : made.error().message()));
    }
}

TEST_CASE("messages about a plan without a name begin with 'plan'")
{
    plan_builder b;
    CHECK(b.finish().error().message() == "plan: it has no ops");
    b.add(memory::fill<float>{.dst = b.output<float>(4).first(2)});
    CHECK(b.finish().error().message() == "plan: no op writes output1 [2, 4)");
    b.input<float>(0);
    CHECK(b.finish().error().message() == "plan: input1: count is 0");
}

TEST_SUITE_END();

} // namespace test_plan_checks
