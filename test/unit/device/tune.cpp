#include "support/device_fixture.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace test_device_tune {

namespace {

using namespace coaccel;
using test::await;
using matmul = blas::matmul<float>;

struct fixture : test::device_fixture {
    explicit fixture(const device_options& o) : device_fixture(o) {}

    /// A product of the identity with itself, and the matrix for the result.
    matmul product() const { return {.a = one, .b = one, .d = result, .m = 2, .n = 2, .k = 2}; }

    buffer<float> one = upload(std::vector<float>{1, 0, 0, 1});
    buffer<float> result = upload(std::vector<float>{5, 6, 7, 8});
};

asio::awaitable<tuning> tune_with_default_token(device gpu, matmul op)
{
    const result<tuning> measured = co_await gpu.async_tune(op);
    REQUIRE(measured);
    co_return measured.value();
}

TEST_SUITE_BEGIN("async_tune");

TEST_CASE("a CPU has no choice of algorithms, and the operands keep their contents")
{
    for (const auto& options : test::host_devices()) {
        fixture f(options);
        const auto measured = await(f.io, f.gpu.async_tune(f.product()));
        REQUIRE_MESSAGE(measured, measured.error().message());
        CHECK(measured.value().candidates == 0);
        CHECK(measured.value().first_us == 0);
        CHECK(measured.value().best_us == 0);
        CHECK(f.download(f.result) == std::vector<float>{5, 6, 7, 8});
        CHECK(f.download(f.one) == std::vector<float>{1, 0, 0, 1});
        REQUIRE_FALSE(f.error_of(f.product()));
        CHECK(f.download(f.result) == std::vector<float>{1, 0, 0, 1});
    }
}

TEST_CASE("every type of product can be tuned")
{
    fixture f(test::pool_options());
    const auto check = [&]<class Op>(Op, std::uint64_t side) {
        const auto a = f.alloc<typename Op::source_type>(side * side);
        const auto b = f.alloc<typename Op::second_type>(side * side);
        const auto d = f.alloc<typename Op::value_type>(side * side);
        const auto measured =
            await(f.io, f.gpu.async_tune(Op{
                            .a = a, .b = b, .d = d, .m = side, .n = side, .k = side, .trans_a = blas::transpose::yes}));
        REQUIRE_MESSAGE(measured, measured.error().message());
        CHECK(measured.value().candidates == 0);
    };
    check(blas::matmul<half, float>{}, 3);
    check(blas::matmul<bfloat16>{}, 3);
    check(blas::matmul<std::int8_t>{}, 4);
    check(blas::matmul<float8_e4m3, float8_e4m3>{}, 16);
    check(blas::matmul<float8_e4m3, bfloat16, float8_e5m2>{}, 16);
}

TEST_CASE("an op that is refused gives its error")
{
    for (const auto& options : test::host_devices()) {
        fixture f(options);
        const auto error = [&](const matmul& op) {
            const auto measured = await(f.io, f.gpu.async_tune(op));
            REQUIRE_FALSE(measured);
            return measured.error();
        };
        auto op = f.product();
        op.k = 0;
        CHECK(error(op) == errc::invalid_argument);
        CHECK(error(op).message() == "blas.matmul: k is 0");
        op = f.product();
        op.bias = ref<float>();
        CHECK(error(op) == errc::out_of_bounds);
        CHECK(error(op).message() == "blas.matmul: bias has 0 elements, needs 2");
        op = f.product();
        f.one.reset();
        CHECK(error(op) == errc::released_ref);
        CHECK(error(op).message() == "blas.matmul: the buffer of a has been released");
    }
}

TEST_CASE("operands of a measurement may overlap, because it writes none of them")
{
    for (const auto& options : test::host_devices()) {
        fixture f(options);
        auto op = f.product();
        op.c = f.result;
        CHECK(f.error_of(op) == errc::overlap);
        const auto measured = await(f.io, f.gpu.async_tune(op));
        REQUIRE_MESSAGE(measured, measured.error().message());
        CHECK(f.download(f.result) == std::vector<float>{5, 6, 7, 8});
    }
}

TEST_CASE("a measurement waits for ops that write its operands, and later writers wait for it")
{
    fixture f(test::pool_options());
    const auto other = f.alloc<float>(4);
    test::gate gate;
    bool measured = false, overwritten = false;
    f.gpu.async_submit(inout(f.one), test::gate_op{&gate}, [](error_code) {});
    f.gpu.async_tune(f.product(), [&](error_code ec, const tuning&) {
        CHECK_FALSE(ec);
        CHECK(gate.is_open());
        measured = true;
    });
    // Its only operand is one that the measurement reads.
    f.gpu.async_exec(memory::fill<float>{f.result, 3}, [&](error_code ec) {
        CHECK_FALSE(ec);
        CHECK(gate.is_open());
        overwritten = true;
    });
    CHECK_FALSE(f.error_of(memory::fill<float>{other, 1}));
    CHECK_FALSE(measured);
    CHECK_FALSE(overwritten);
    gate.open();
    test::run_until(f.io, [&] { return measured && overwritten; });
    CHECK(f.download(f.result) == std::vector<float>(4, 3));
}

TEST_CASE("a measurement and an op that reads its operands do not wait for each other")
{
    fixture f(test::pool_options());
    test::gate gate;
    f.gpu.async_submit(in(f.result), test::gate_op{&gate}, [](error_code) {});
    const auto measured = await(f.io, f.gpu.async_tune(f.product()));
    CHECK(measured);
    CHECK_FALSE(gate.is_open());
    gate.open();
}

TEST_CASE("a coroutine awaits a measurement with the default token")
{
    fixture f(test::pool_options());
    CHECK(test::co_run(f.io, tune_with_default_token(f.gpu, f.product())).candidates == 0);
}

TEST_CASE("a device that was shut down measures nothing")
{
    fixture f(test::pool_options());
    const auto op = f.product();
    REQUIRE(await(f.io, f.gpu.async_shutdown()));
    const auto measured = await(f.io, f.gpu.async_tune(op));
    REQUIRE_FALSE(measured);
    CHECK(measured.error() == errc::device_stopped);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_tune
