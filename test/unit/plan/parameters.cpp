#include "../jit/support.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <string>
#include <vector>

namespace test_plan_parameters {

namespace {

using namespace coaccel;
using gemv = blas::gemv<float>;
using detail::plan_binding;

const detail::plan_data& data_of(const plan_description& p)
{
    return *detail::plan_access::data(p);
}

/// y = alpha * w * x + beta * y, with parameters for some of the factors.
struct product {
    explicit product(plan_builder& b)
        : x(b.input<float>(2, "x")), w(b.constant<float>(std::vector<float>(4, 1), "w")), y(b.output<float>(2, "y")),
          op{.a = w, .x = x, .y = y, .m = 2, .n = 2}
    {}

    ref<float> x, w, y;
    gemv op;
};

std::string message_of(const plan_builder& b, errc expected = errc::invalid_argument)
{
    const auto made = b.finish();
    REQUIRE_FALSE(made);
    CHECK(made.error() == expected);
    return made.error().message();
}

jit::kernel scale_kernel()
{
    return test::make_kernel(jit::compile_options("scale"), "_Z5scalePKfPff");
}

} // namespace

TEST_SUITE_BEGIN("plan parameters");

TEST_CASE("a parameter is one staged element, and the other factor becomes a constant")
{
    plan_builder b("p");
    const product p(b);
    const auto alpha = b.parameter<float>("alpha");
    b.add(p.op, bind(&gemv::alpha, alpha));
    b.add(p.op, bind(&gemv::alpha, alpha));
    const auto made = b.finish().value();
    const auto& data = data_of(made);
    CHECK(made.parameters() == std::vector<plan_argument>{{"alpha", dtype::f32, 1}});
    CHECK(made.inputs().size() == 1);
    // The slots: x, w, y, alpha, and one constant for both beta. The fields of gemv: a, x, y, m, n, alpha, beta.
    REQUIRE(data.slots.size() == 5);
    CHECK(data.bindings == std::vector<plan_binding>{{0, 5, 3}, {0, 6, 4}, {1, 5, 3}, {1, 6, 4}});
    CHECK(data.slots[4].kind == slot_kind::constant);
    CHECK(data.slots[4].name == "scalar1");
    REQUIRE(data.constant_contents.size() == 2);
    CHECK(*reinterpret_cast<const float*>(data.constant_contents[1].data.get()) == 0);
    CHECK(data.slots[3].offset >= data.staged_inputs.offset);
    CHECK(data.slots[3].offset + 4 <= data.staged_inputs.offset + data.staged_inputs.bytes);
}

TEST_CASE("parameters are placed before large inputs")
{
    plan_builder b;
    const auto large = b.input<float>(1 << 20);
    const auto alpha = b.parameter<float>();
    const auto y = b.output<float>(1 << 20);
    b.add(memory::copy<float>{large, y});
    b.add(blas::scal<float>{.x = y, .n = 4}, bind(&blas::scal<float>::alpha, alpha));
    const auto made = b.finish().value();
    const auto& data = data_of(made);
    CHECK(data.staged_inputs.bytes == 4);
    CHECK(data.slots[0].offset == 256);
    CHECK(data.slots[1].name == "parameter1");
}

TEST_CASE("the value of a field with a parameter does not matter, but the parameter does")
{
    const auto id = [](float unused, bool second) {
        plan_builder b;
        product p(b);
        const auto first = b.parameter<float>();
        const auto other = b.parameter<float>();
        p.op.alpha = unused;
        b.add(blas::scal<float>{.x = b.state<float>(1), .n = 1}, bind(&blas::scal<float>::alpha, first));
        b.add(blas::scal<float>{.x = b.state<float>(1), .n = 1}, bind(&blas::scal<float>::alpha, other));
        b.add(p.op, bind(&gemv::alpha, second ? other : first));
        return b.finish().value().id();
    };
    CHECK(id(1, false) == id(2, false));
    CHECK(id(1, false) != id(1, true));
}

TEST_CASE("texts name the parameters")
{
    plan_builder b("p");
    const product p(b);
    const auto alpha = b.parameter<float>("alpha");
    b.add(p.op, bind(&gemv::alpha, alpha));
    const auto made = b.finish().value();
    const auto text = made.to_text();
    CHECK(text.find("alpha: parameter of 1 f32, at byte 256\n") != std::string::npos);
    CHECK(text.find("alpha = alpha, beta = scalar1, trans") != std::string::npos);
    CHECK(made.to_graphviz().find("slot3 -> op1 [label=\"alpha\"]") != std::string::npos);
}

TEST_CASE("a launch takes a parameter in the place of a number")
{
    const auto k = scale_kernel();
    plan_builder b;
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    const auto by = b.parameter<float>("by");
    const auto launch = jit::launch(k, {}, in<float>(x), out<float>(y), by);
    static_assert(!op<std::remove_const_t<decltype(launch)>>, "only a plan can contain it");
    b.add(launch);
    const auto made = b.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(data_of(made.value()).bindings == std::vector<plan_binding>{{0, 2, 2}});
    CHECK(data_of(made.value()).slots.size() == 3);
}

TEST_CASE("a launch with a parameter of another type than the kernel's is refused")
{
    const auto k = scale_kernel();
    plan_builder b;
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    b.add(jit::launch(k, {}, in<float>(x), out<float>(y), b.parameter<double>("by")));
    CHECK(message_of(b, errc::argument_mismatch).find("argument 3: the kernel takes 'float'") != std::string::npos);
}

TEST_CASE("a result with a parameter as its factor must have been written")
{
    plan_builder b("p");
    const product p(b);
    b.add(p.op, bind(&gemv::beta, b.parameter<float>()));
    CHECK(message_of(b) == "plan p: op 1 (blas.gemv<f32>): y is not completely overwritten, so it keeps or adds to y "
                           "[0, 2), which no earlier op has written");
}

TEST_CASE("what cannot be a parameter is refused with the names of op and field")
{
    {
        plan_builder b("p");
        const product p(b);
        b.add(p.op, bind(&gemv::m, b.parameter<std::uint64_t>()));
        CHECK(message_of(b) == "plan p: op 1 (blas.gemv<f32>): m cannot be a parameter");
    }
    {
        plan_builder b("p");
        const auto y = b.output<float>(2);
        b.add(memory::fill<float>{y, 0}, bind(&memory::fill<float>::value, b.parameter<float>()));
        CHECK(message_of(b) == "plan p: op 1 (memory.fill<f32>): value cannot be a parameter");
    }
    {
        plan_builder other;
        const auto foreign = other.parameter<float>();
        plan_builder b("p");
        const product p(b);
        b.add(p.op, bind(&gemv::alpha, foreign));
        CHECK(message_of(b) == "plan p: op 1 (blas.gemv<f32>): alpha names a parameter of another builder");
    }
    {
        plan_builder b("p");
        const product p(b);
        b.add(p.op, bind(&gemv::alpha, plan_parameter<float>()));
        CHECK(message_of(b) == "plan p: op 1 (blas.gemv<f32>): alpha names no parameter");
    }
    {
        plan_builder b("p");
        const product p(b);
        const auto alpha = b.parameter<float>();
        b.add(p.op, bind(&gemv::alpha, alpha), bind(&gemv::alpha, alpha));
        CHECK(message_of(b) == "plan p: op 1 (blas.gemv<f32>): alpha has two parameters");
    }
    {
        plan_builder b("p");
        const product p(b);
        b.add(p.op, bind(&gemv::alpha, plan_parameter<float>::from_raw(p.x.raw())));
        CHECK(message_of(b) == "plan p: op 1 (blas.gemv<f32>): alpha names x, which is not a parameter");
    }
    {
        plan_builder b("p");
        const auto alpha = b.parameter<float>("alpha");
        const auto y = b.output<float>(1);
        b.add(memory::copy<float>{ref<float>::from_raw(alpha.raw()), y});
        CHECK(message_of(b) == "plan p: op 1 (memory.copy<f32>): src names alpha, which is a parameter");
    }
    {
        plan_builder b("p");
        const product p(b);
        (void)b.parameter<float>("unused");
        b.add(p.op);
        CHECK(message_of(b) == "plan p: no op uses the parameter unused");
    }
}

TEST_SUITE_END();

} // namespace test_plan_parameters
