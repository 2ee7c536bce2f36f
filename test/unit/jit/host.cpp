#include "host/op_table.hpp"
#include "support.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace test_jit_host {

namespace {

using namespace coaccel;

struct pair {
    float a, b;
};

void saxpy(const jit::launch_shape& shape, const float* x, float* y, float a, std::uint32_t n)
{
    CHECK(shape.grid.x == 2);
    for (std::uint32_t i = 0; i < n; ++i)
        y[i] += a * x[i];
}

void with_pair(const jit::launch_shape&, float* y, pair p, bool flag, half h)
{
    y[0] = flag ? p.a + 10 * p.b + 100 * float(h) : 0;
}

void throws(const jit::launch_shape&)
{
    throw std::runtime_error("user");
}

/// Binds the op to the test's memory and runs it as the host backend does.
template <class Op>
error_code run(const Op& op, std::initializer_list<void*> memory)
{
    std::vector<void*> addresses(memory);
    bound_op bound{.info = &info_of<Op>(), .op = &op, .operands = addresses.data()};
    const auto* code = host::all_ops().find(bound.info->id);
    REQUIRE(code);
    code->run(bound);
    return bound.status;
}

const ref<float> any{};

} // namespace

TEST_SUITE_BEGIN("jit on the host");

TEST_CASE("a launch calls the host function with the memory and the values")
{
    const auto k = test::make_kernel(jit::compile_options("saxpy").host(saxpy), "saxpy");
    std::array<float, 3> x{1, 2, 3};
    std::array<float, 3> y{10, 20, 30};
    const auto op = jit::launch(k, {.grid = {2}}, in(any), inout(any), 2.0f, 3u);
    CHECK_FALSE(op.check());
    CHECK_FALSE(run(op, {x.data(), y.data()}));
    CHECK(y == std::array<float, 3>{12, 24, 36});
}

TEST_CASE("structures, flags and small floats arrive unchanged")
{
    const auto k = test::make_kernel(jit::compile_options("f").host(with_pair), "f");
    float y = 0;
    CHECK_FALSE(run(jit::launch(k, {}, out(any), pair{1, 2}, true, half(3.0f)), {&y}));
    CHECK(y == 321);
}

TEST_CASE("an exception of the host function is the op's status")
{
    const auto k = test::make_kernel(jit::compile_options("f").host(throws), "f");
    CHECK(run(jit::launch(k, {}), {}) == errc::user_exception);
}

TEST_CASE("a kernel without a host function is not supported")
{
    const auto k = test::make_kernel(jit::compile_options("f"), "f");
    const auto ec = run(jit::launch(k, {}), {});
    CHECK(ec == errc::unsupported_op);
    CHECK(ec.message() == "jit.launch: the kernel f has no host function, and this device is the CPU; give it one with "
                          "compile_options::host, or use a GPU");
}

TEST_CASE("a launch op still runs after its kernel is released")
{
    auto k = test::make_kernel(jit::compile_options("f").host(with_pair), "f");
    const auto op = jit::launch(k, {}, out(any), pair{1, 0}, true, half(0.0f));
    k = {};
    float y = 0;
    CHECK_FALSE(run(op, {&y}));
    CHECK(y == 1);
}

TEST_CASE("the host reports an occupancy of one thread per block")
{
    const auto k = test::make_kernel(jit::compile_options("f").host(throws), "f");
    const auto op = jit::occupancy(k);
    jit::occupancy_info reply;
    bound_op bound{.info = &info_of<jit::occupancy_op>(), .op = &op, .reply = &reply};
    host::all_ops().find(bound.info->id)->run(bound);
    CHECK_FALSE(bound.status);
    CHECK(reply.block_size == 1);
    CHECK(reply.min_grid_size >= 1);
    CHECK(reply.blocks_per_multiprocessor == 1);
}

TEST_CASE("a host-only kernel keeps the reason for its missing device code")
{
    const auto made = jit::make_host_kernel(jit::compile_options("f").host(throws), "no compiler here");
    REQUIRE(made.has_value());
    CHECK(made.value().log() == "no compiler here");
    CHECK(made.value().name() == "f");
    CHECK(run(jit::launch(made.value(), {}), {}) == errc::user_exception);

    const auto without = jit::make_host_kernel(jit::compile_options("f"), "no compiler here");
    REQUIRE_FALSE(without.has_value());
    CHECK(without.error() == errc::unsupported_op);
    CHECK(without.error().message().find("no compiler here") != std::string::npos);
    const auto nameless = jit::make_host_kernel(jit::compile_options().host(throws), "");
    REQUIRE_FALSE(nameless.has_value());
    CHECK(nameless.error() == errc::invalid_argument);
}

TEST_SUITE_END();

} // namespace test_jit_host
