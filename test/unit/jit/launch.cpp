#include "jit/registry.hpp"
#include "support.hpp"

#include <vector>

namespace test_jit_launch {

namespace {

using namespace coaccel;

enum class mode : std::int32_t { fast = 7 };

struct params {
    double x;
    int n;
};

void scale(const jit::launch_shape&, const float*, float*, float, std::uint32_t) {}

ref<float> some_ref(std::uint32_t slot)
{
    return ref<float>::from_raw({.slot = slot, .size = 4, .type = dtype::f32});
}

const jit::launch_shape one{};

} // namespace

TEST_SUITE_BEGIN("jit::launch");

TEST_CASE("a launch op describes its operands and stores its arguments at the stated offsets")
{
    const auto k = test::make_kernel(jit::compile_options("f"), "f");
    const auto op = jit::launch(k, {.grid = {3, 2}, .block = {64}, .shared_bytes = 16}, true, in(some_ref(1)), 2.5,
                                out(some_ref(2)), mode::fast, params{1.5, 9}, inout(some_ref(3)));
    static_assert(coaccel::op<std::remove_const_t<decltype(op)>>);
    const auto& info = info_of<std::remove_const_t<decltype(op)>>();
    CHECK(info.id == jit::launch_op_id);
    CHECK(info.size == sizeof(op));
    CHECK(info.reply_size == 0);
    REQUIRE(info.operands.size() == 3);
    const coaccel::access modes[] = {coaccel::access::read, coaccel::access::write, coaccel::access::read_write};
    for (std::uint32_t i = 0; i < 3; ++i) {
        CHECK(info.operands[i].mode == modes[i]);
        CHECK(info.operands[i].type == dtype::f32);
        any_ref found;
        std::memcpy(&found, reinterpret_cast<const char*>(&op) + info.operands[i].offset, sizeof(found));
        CHECK(found == some_ref(i + 1).raw());
    }

    // As a backend reads it.
    const auto& head = *reinterpret_cast<const jit::launch_head*>(&op);
    CHECK(head.kernel == k.id());
    CHECK(head.shape == jit::launch_shape{{3, 2, 1}, {64, 1, 1}, 16});
    REQUIRE(head.count == 7);
    const auto load = [&](std::size_t i, auto& to) {
        std::memcpy(&to, reinterpret_cast<const char*>(&op) + head.arguments()[i].offset, sizeof(to));
    };
    bool flag = false;
    double number = 0;
    mode how{};
    params p{};
    load(0, flag);
    load(2, number);
    load(4, how);
    load(5, p);
    CHECK(flag);
    CHECK(number == 2.5);
    CHECK(how == mode::fast);
    CHECK(p.x == 1.5);
    CHECK(p.n == 9);
    CHECK(head.arguments()[1].operand == 0);
    CHECK(head.arguments()[3].operand == 1);
    CHECK(head.arguments()[6].operand == 2);
    CHECK(head.arguments()[5].operand == jit::launch_argument::no_operand);
}

TEST_CASE("matching arguments pass the check")
{
    const auto k = test::make_kernel(jit::compile_options("scale"), "_Z5scalePKfPffj");
    CHECK(k.knows_parameters());
    CHECK(k.parameters() == std::vector<std::string>{"float const*", "float*", "float", "unsigned int"});
    CHECK_FALSE(jit::launch(k, one, in(some_ref(1)), out(some_ref(2)), 1.0f, 4u).check());
    CHECK_FALSE(jit::launch(k, one, in(some_ref(1)), inout(some_ref(2)), 1.0f, 4u).check());
}

TEST_CASE("values of a dependent type are left to the driver's check")
{
    // template <class Op> void apply(const typename Op::value_type*, typename Op::value_type), of a class add
    const auto k = test::make_kernel(jit::compile_options("apply<add>"), "_Z5applyI3addEvPKNT_10value_typeES2_");
    CHECK(k.parameters() == std::vector<std::string>{"add::value_type const*", "add::value_type"});
    CHECK_FALSE(jit::launch(k, one, in(some_ref(1)), 1.0f).check());
    CHECK_FALSE(jit::launch(k, one, in(some_ref(1)), params{}).check());
    CHECK(jit::launch(k, one, out(some_ref(1)), 1.0f).check() == errc::argument_mismatch);
    CHECK(jit::launch(k, one, 1.0f, 1.0f).check() == errc::argument_mismatch);
    CHECK(jit::launch(k, one, in(some_ref(1))).check() == errc::argument_mismatch);
}

TEST_CASE("a pointer to a structure accepts any buffer, unless the host function names an element type")
{
    // f(const float4*, __half2*, params*)
    const std::string symbol = "_Z1fPK6float4P7__half2P6params";
    const auto k = test::make_kernel(jit::compile_options("f"), symbol);
    const auto bytes = out(ref<std::uint8_t>());
    CHECK_FALSE(jit::launch(k, one, in(some_ref(1)), out(ref<half>()), bytes).check());
    CHECK(jit::launch(k, one, out(some_ref(1)), out(ref<half>()), bytes).check() == errc::argument_mismatch);
    CHECK(jit::launch(k, one, 1.0f, out(ref<half>()), bytes).check() == errc::argument_mismatch);

    const auto with_host = test::make_kernel(
        jit::compile_options("f").host(+[](const jit::launch_shape&, const float*, half*, params*) {}), symbol);
    CHECK_FALSE(jit::launch(with_host, one, in(some_ref(1)), out(ref<half>()), bytes).check());
    CHECK(jit::launch(with_host, one, in(ref<double>()), out(ref<half>()), bytes).check() == errc::argument_mismatch);
}

TEST_CASE("mismatched arguments are refused with a specific message")
{
    const auto k = test::make_kernel(jit::compile_options("scale"), "_Z5scalePKfPffj");
    const auto a = in(some_ref(1));
    const auto b = out(some_ref(2));
    const struct {
        const char* name;
        error_code ec;
        std::vector<std::string> words;
    } rows[] = {
        {"too few", jit::launch(k, one, a, b, 1.0f).check(), {"scale", "4 arguments", "given 3"}},
        {"too many", jit::launch(k, one, a, b, 1.0f, 4u, 5u).check(), {"4 arguments", "given 5"}},
        {"none", jit::launch(k, one).check(), {"given 0"}},
        {"double for float", jit::launch(k, one, a, b, 1.0, 4u).check(), {"argument 3", "'float'", "'double'"}},
        {"signed for unsigned", jit::launch(k, one, a, b, 1.0f, 4).check(), {"argument 4", "'unsigned int'", "'int'"}},
        {"a value for a buffer", jit::launch(k, one, 1.0f, b, 1.0f, 4u).check(), {"argument 1", "'float const*'"}},
        {"in for out", jit::launch(k, one, a, in(some_ref(2)), 1.0f, 4u).check(), {"argument 2", "out or inout"}},
        {"out for in", jit::launch(k, one, b, b, 1.0f, 4u).check(), {"argument 1", "use in"}},
        {"a structure", jit::launch(k, one, a, b, params{}, 4u).check(), {"argument 3", "16 bytes"}},
        {"another element", jit::launch(k, one, in(ref<half>()), b, 1.0f, 4u).check(), {"argument 1", "const half*"}},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        CAPTURE(r.ec.message());
        CHECK(r.ec == errc::argument_mismatch);
        for (const auto& word : r.words)
            CHECK(r.ec.message().find(word) != std::string::npos);
    }
}

TEST_CASE("an empty grid or block is refused")
{
    const auto k = test::make_kernel(jit::compile_options("f"), "f");
    for (const jit::dim3 d : {jit::dim3{0, 1, 1}, jit::dim3{1, 0, 1}, jit::dim3{1, 1, 0}}) {
        CHECK(jit::launch(k, {.grid = d}).check() == errc::invalid_launch);
        CHECK(jit::launch(k, {.block = d}).check() == errc::invalid_launch);
    }
    CHECK_FALSE(jit::launch(k, one).check());
    CHECK(jit::launch(k, {.grid = {0, 1, 1}}).check().message() == "jit.launch: f: the grid is 0 x 1 x 1");
    CHECK(jit::launch(k, {.block = {32, 0, 1}}).check().message() == "jit.launch: f: the block is 32 x 0 x 1");
}

TEST_CASE("an empty or released kernel cannot be launched")
{
    CHECK(jit::launch(jit::kernel(), one).check() == errc::invalid_argument);
    auto k = test::make_kernel(jit::compile_options("f"), "f");
    const auto id = k.id();
    const auto op = jit::launch(k, one);
    const auto question = jit::occupancy(k);
    CHECK_FALSE(op.check());
    CHECK_FALSE(question.check());
    auto copy = k;
    k = {};
    CHECK_FALSE(op.check());
    CHECK(jit::find_image(id) != nullptr);
    copy = {};
    CHECK(op.check() == errc::invalid_argument);
    CHECK(op.check().message() == "jit.launch: the kernel was never compiled, or no copy of it is left; keep one until "
                                  "the op is given to the device");
    CHECK(question.check() == errc::invalid_argument);
    CHECK(question.check().message().starts_with("jit.occupancy: the kernel was never compiled"));
    CHECK(jit::find_image(id) == nullptr);
    CHECK(jit::launch_op<>().check() == errc::invalid_argument);
}

TEST_CASE("each of many kernels is found repeatedly")
{
    std::vector<jit::kernel> all;
    for (int i = 0; i < 20; ++i)
        all.push_back(test::make_kernel(jit::compile_options("f"), "f"));
    for (int round = 0; round < 2; ++round)
        for (const auto& k : all) {
            REQUIRE(jit::find_image(k.id()) != nullptr);
            CHECK(jit::find_image(k.id())->id == k.id());
        }
}

TEST_CASE("the reference from keep() outlives the kernel handle")
{
    auto k = test::make_kernel(jit::compile_options("f"), "f");
    const auto op = jit::launch(k, one);
    const auto question = jit::occupancy(k);
    auto kept = op.keep();
    k = {};
    CHECK_FALSE(op.check());
    CHECK(question.keep() == kept);
    kept = {};
    CHECK(op.check() == errc::invalid_argument);
    CHECK(op.keep() == nullptr);
}

TEST_CASE("an extern C kernel is checked against its host function, if it has one")
{
    const auto without = test::make_kernel(jit::compile_options("scale"), "scale");
    CHECK_FALSE(without.knows_parameters());
    CHECK(without.parameters().empty());
    CHECK_FALSE(jit::launch(without, one, 1, 2, 3).check());

    const auto with = test::make_kernel(jit::compile_options("scale").host(scale), "scale");
    CHECK(with.knows_parameters());
    CHECK(jit::launch(with, one, 1, 2, 3).check() == errc::argument_mismatch);
    CHECK_FALSE(jit::launch(with, one, in(some_ref(1)), out(some_ref(2)), 1.0f, 4u).check());
}

TEST_CASE("a kernel with a mismatched host function is refused")
{
    const auto made = jit::make_kernel(jit::compile_options("scale").host(scale), {"_Z5scalePKfPf", "code", {}});
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error() == errc::argument_mismatch);
    CHECK(made.error().message().find("host function") != std::string::npos);
}

TEST_CASE("a host function gets the same number for every kernel")
{
    const auto a = jit::register_host_function(jit::make_host_function(scale));
    const auto b = jit::register_host_function(jit::make_host_function(scale));
    const auto c = jit::register_host_function(jit::make_host_function(+[](const jit::launch_shape&) {}));
    CHECK(a == b);
    CHECK(a != c);
    CHECK(jit::find_host_function(a).parameters.size() == 4);
    CHECK_FALSE(jit::find_host_function(0));
    CHECK_FALSE(jit::find_host_function(c + 1000));
}

TEST_SUITE_END();

} // namespace test_jit_launch
