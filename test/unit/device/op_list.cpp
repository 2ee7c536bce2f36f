#include "support/devices.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

namespace test_device_op_list {

namespace {

using namespace coaccel;
using test::await;
using test::make_device;

struct fixture {
    asio::io_context io;
    device gpu = make_device(io);
    buffer<float> x = await(io, gpu.async_alloc<float>(8)).value();
};

/// Not known to any backend.
struct foreign {
    inout<float> x;

    error_code check() const noexcept { return {}; }

    COACCEL_OP(user, foreign, void, x)
};

/// More operands than most ops have.
struct many {
    in<float> a, b, c, d, e, f, g, h, i;
    out<float> j;

    error_code check() const noexcept { return {}; }

    COACCEL_OP(user, many, void, a, b, c, d, e, f, g, h, i, j)
};

} // namespace

TEST_SUITE_BEGIN("op_list");

TEST_CASE_FIXTURE(fixture, "ops that were chosen at run time run in their order and complete once")
{
    op_list ops;
    ops.add(memory::fill<float>{x, 1.0f});
    for (int i = 0; i < 5; ++i)
        ops.add(blas::scal<float>{.x = x, .n = 8, .alpha = 2});
    ops.add(blas::asum<float>{.x = x, .n = 8});
    CHECK(ops.size() == 7);
    CHECK(ops.info(1).name == "blas.scal<f32>");
    const auto replies = await(io, gpu.async_exec(ops)).value();
    CHECK(replies.get<blas::asum<float>>(6) == 8 * 32);
    // The list can be used again.
    CHECK(await(io, gpu.async_exec(ops)).value().get<blas::asum<float>>(6) == 8 * 32);
}

TEST_CASE_FIXTURE(fixture, "a reply is that of an op of this type")
{
    op_list ops;
    ops.add(memory::fill<float>{x, 1.0f}).add(blas::asum<float>{.x = x, .n = 8});
    const auto replies = await(io, gpu.async_exec(ops)).value();
    CHECK_THROWS_AS((void)replies.get<blas::asum<float>>(0), std::out_of_range);
    CHECK_THROWS_AS((void)replies.get<blas::asum<float>>(2), std::out_of_range);
    CHECK_THROWS_AS((void)replies.get<blas::nrm2<float>>(1), std::out_of_range);
    CHECK(replies.get<blas::asum<float>>(1) == 8);
}

TEST_CASE_FIXTURE(fixture, "lists and sequences can be nested")
{
    op_list inner;
    inner.add(blas::scal<float>{.x = x, .n = 8, .alpha = 3});
    op_list ops;
    ops.add(memory::fill<float>{x, 1.0f}).add(inner).add(inner).add(blas::asum<float>{.x = x, .n = 8});
    CHECK(await(io, gpu.async_exec(ops)).value().get<blas::asum<float>>(3) == 72);
    inner.add(inner);
    CHECK(inner.size() == 2);

    const auto twice = seq(blas::scal<float>{.x = x, .n = 8, .alpha = 2}, blas::asum<float>{.x = x, .n = 8});
    const auto [first, second] =
        await(io, gpu.async_exec(seq(memory::fill<float>{x, 1.0f}, twice, seq(twice)))).value();
    CHECK(first == 16);
    CHECK(second == 32);
}

TEST_CASE_FIXTURE(fixture, "if one op of a list is refused, none is started")
{
    REQUIRE(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    op_list ops;
    ops.add(memory::fill<float>{x, 5.0f}).add(blas::scal<float>{.x = x});
    const auto refused = await(io, gpu.async_exec(ops));
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(refused.error().message().find("blas.scal") != std::string::npos);
    CHECK(await(io, gpu.async_download(x.ref())).value() == std::vector<float>(8, 1.0f));
}

TEST_CASE_FIXTURE(fixture, "an empty list is refused")
{
    const auto refused = await(io, gpu.async_exec(op_list()));
    CHECK(refused.error() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(fixture, "an op that the backend does not implement is refused, whatever its operands")
{
    CHECK(await(io, gpu.async_exec(foreign{x})).error() == errc::unsupported_op);
    CHECK(await(io, gpu.async_exec(many{x, x, x, x, x, x, x, x, x, x})).error() == errc::unsupported_op);
    op_list ops;
    ops.add(many{x, x, x, x, x, x, x, x, x, x});
    CHECK(await(io, gpu.async_exec(ops)).error() == errc::unsupported_op);
}

TEST_CASE_FIXTURE(fixture, "a function may have more than eight operands")
{
    std::vector<buffer<float>> all;
    for (int i = 0; i < 10; ++i) {
        all.push_back(await(io, gpu.async_alloc<float>(2)).value());
        REQUIRE(await(io, gpu.async_exec(memory::fill<float>{all.back(), static_cast<float>(i)})));
    }
    const auto sum = [](native_stream, auto... inputs) {
        const auto spans = std::tuple(inputs...);
        auto& to = std::get<9>(spans)[0];
        to = std::apply([](auto... s) { return (0.0f + ... + s[0]); }, spans);
    };
    REQUIRE(await(io, gpu.async_submit(in(all[0]), in(all[1]), in(all[2]), in(all[3]), in(all[4]), in(all[5]),
                                       in(all[6]), in(all[7]), in(all[8]), inout(all[9]), sum)));
    CHECK(await(io, gpu.async_download(all[9].ref())).value()[0] == 45);
}

TEST_SUITE_END();

} // namespace test_device_op_list
