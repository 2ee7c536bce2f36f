#include "cache_folder.hpp"
#include "cuda_world.hpp"

#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace test_cuda_blas_tuning_context {

// Measurements of algorithms as requests of a context.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using product = blas::matmul<float>;
using test::context_driver;
using test::cuda_world;
using test::exec;

const exec_options first_lane{.lane = 1}, second_lane{.lane = 2};

/// The device does not begin with the products before `open`. The first algorithm is refused.
struct blocked_world {
    explicit blocked_world(std::chrono::milliseconds hang_timeout = {})
    {
        w.context.hang_timeout = hang_timeout;
        w.lt.set_algorithms({{.status = CUBLAS_STATUS_NOT_SUPPORTED}, {}});
        w.lt.before_products([this](CUstream s) {
            if (!launched.exchange(true))
                w.driver.block(s, [this] { return open.load(); });
        });
    }

    std::atomic<bool> launched = false, open = false;
    test::cache_folder folder;
    cuda_world w;
};

/// D = A * B with A of 2 by 2, B of 2 by 1.
struct operands {
    explicit operands(context_driver& driver) : a(driver.floats(4)), b(driver.floats(2)), d(driver.floats(2))
    {
        driver.write(a, {1, 2, 3, 4});
        driver.write(b, {1, 10});
        driver.write(d, {-1, -1});
    }

    product op() const { return {.a = a, .b = b, .d = d, .m = 2, .n = 1, .k = 2}; }

    ref<float> a, b, d;
};

} // namespace

TEST_SUITE_BEGIN("tuning in a context");

TEST_CASE("an op is tuned for all lanes, and the ops of its lane wait")
{
    blocked_world w;
    context_driver d(w.w);
    const operands x(d), y(d);
    exec<tune<product>> measurements(tune<product>{x.op()}, first_lane);
    exec<product> behind(x.op(), first_lane);
    d.submit(measurements);
    d.submit(behind);
    d.run_until([&] { return w.launched.load(); });
    // Another lane goes on.
    exec<memory::fill<float>> fill(memory::fill<float>{y.d, 3}, second_lane);
    CHECK_FALSE(d.outcome_of(fill));
    CHECK(d.read(y.d) == std::vector<float>{3, 3});
    CHECK_FALSE(d.has_ended(measurements));
    CHECK_FALSE(d.has_ended(behind));
    w.open = true;
    d.run_until([&] { return d.has_ended(behind); });
    CHECK_FALSE(d.outcome(measurements));
    CHECK_FALSE(d.outcome(behind));
    CHECK(std::get<1>(measurements.take()).candidates == 1);
    CHECK(d.read(x.d) == std::vector<float>{31, 42});
    CHECK(w.w.lt.products().back().algorithm == 1);
    exec<product> elsewhere(x.op(), second_lane);
    CHECK_FALSE(d.outcome_of(elsewhere));
    CHECK(w.w.lt.products().back().algorithm == 1);
    CHECK(d.losses == 0);
}

TEST_CASE("ops of several lanes are tuned one after the other")
{
    blocked_world w;
    context_driver d(w.w);
    const operands x(d), y(d), z(d);
    exec<tune<product>> first(tune<product>{x.op()}, first_lane);
    d.submit(first);
    d.run_until([&] { return w.launched.load(); });
    exec<tune<product>> second(tune<product>{y.op()}, second_lane);
    exec<product> behind(y.op(), second_lane);
    d.submit(second);
    d.submit(behind);
    exec<memory::fill<float>> fill(memory::fill<float>{z.d, 3}, exec_options{.lane = 3});
    CHECK_FALSE(d.outcome_of(fill));
    // The refused algorithm, and the one that waits.
    CHECK(w.w.lt.products().size() == 2);
    CHECK_FALSE(d.has_ended(second));
    w.open = true;
    d.run_until([&] { return d.has_ended(behind); });
    CHECK_FALSE(d.outcome(first));
    CHECK_FALSE(d.outcome(second));
    CHECK_FALSE(d.outcome(behind));
    CHECK(std::get<1>(second.take()).candidates == 1);
    CHECK(d.losses == 0);
}

TEST_CASE("an op that cannot be tuned fails, and the context goes on")
{
    blocked_world w;
    w.open = true;
    context_driver d(w.w);
    const operands x(d);
    auto wrong = x.op();
    wrong.k = 3;
    exec<tune<product>> refused(tune<product>{wrong}, exec_options{});
    CHECK(d.outcome_of(refused) == errc::out_of_bounds);
    w.w.lt.set_algorithms({});
    exec<tune<product>> none(tune<product>{x.op()}, exec_options{});
    CHECK(d.outcome_of(none) == errc::unsupported_op);
    w.w.lt.set_algorithms({{}});
    exec<tune<product>> measurements(tune<product>{x.op()}, exec_options{});
    CHECK_FALSE(d.outcome_of(measurements));
    CHECK(std::get<1>(measurements.take()).candidates == 1);
    CHECK(d.losses == 0);
}

TEST_CASE("a context that is lost while it measures ends the op")
{
    blocked_world w;
    context_driver d(w.w);
    const operands x(d);
    exec<tune<product>> measurements(tune<product>{x.op()}, exec_options{});
    d.submit(measurements);
    d.run_until([&] { return w.launched.load(); });
    w.w.driver.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
    d.run_until([&] { return d.losses > 0; });
    CHECK(d.outcome(measurements) == errc::context_lost);
    CHECK(w.folder.files().empty());
}

namespace {

/// Such a context is abandoned with all its resources, including the thread that waits in the driver. It may leave the
/// driver now.
void end_abandoned(blocked_world& w)
{
    w.open = true;
    CHECK(w.w.driver.violations().empty());
}

} // namespace

TEST_CASE("measurements that never end condemn their context when hang_timeout is set")
{
    blocked_world w(400ms);
    {
        context_driver d(w.w);
        const operands x(d);
        exec<tune<product>> measurements(tune<product>{x.op()}, exec_options{});
        d.submit(measurements);
        d.run_until([&] { return d.losses > 0; });
        CHECK(w.launched);
        CHECK(d.outcome(measurements) == errc::context_lost);
    }
    end_abandoned(w);
}

TEST_CASE("measurements that take less than hang_timeout are not a hang")
{
    blocked_world w(20s);
    context_driver d(w.w);
    const operands x(d);
    exec<tune<product>> measurements(tune<product>{x.op()}, exec_options{});
    d.submit(measurements);
    d.run_until([&] { return w.launched.load(); });
    w.open = true;
    d.run_until([&] { return d.has_ended(measurements); });
    CHECK_FALSE(d.outcome(measurements));
    CHECK(d.losses == 0);
}

TEST_CASE("a dropped context does not wait for measurements that never end when hang_timeout is set")
{
    blocked_world w(400ms);
    {
        context_driver d(w.w);
        const operands x(d);
        exec<tune<product>> measurements(tune<product>{x.op()}, exec_options{});
        d.submit(measurements);
        d.run_until([&] { return w.launched.load(); });
        detail::async_op_list left;
        d.context->drop(left);
        CHECK(left.pop_front() == &measurements);
    }
    end_abandoned(w);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_tuning_context
