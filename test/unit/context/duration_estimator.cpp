#include "context/completion/duration_estimator.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/device/detail/exec_requests.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace test_context_duration_estimator {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::duration_estimator;

template <class Op>
struct asked final : detail::exec_request<Op> {
    explicit asked(const Op& op) : detail::exec_request<Op>(nullptr, op, {}) {}
    void post() override {}
    void destroy() noexcept override {}
};

template <class Op>
duration_estimator::kind kind_of(const Op& op)
{
    return duration_estimator::kind_of(asked<Op>(op));
}

ref<float> floats(std::uint64_t size, std::uint32_t slot = 1)
{
    return ref<float>::from_raw({1, 1, slot, 1, 0, size, dtype::f32});
}

} // namespace

TEST_SUITE_BEGIN("duration_estimator");

TEST_CASE("ops of the same name and sizes are of one kind, whatever their buffers")
{
    CHECK(kind_of(blas::scal<float>{.x = floats(10, 1)}) == kind_of(blas::scal<float>{.x = floats(10, 2)}));
    const std::set kinds{kind_of(blas::scal<float>{.x = floats(10)}), kind_of(blas::scal<float>{.x = floats(11)}),
                         kind_of(blas::asum<float>{.x = floats(10)}),
                         kind_of(detail::write_op<float>{floats(10), nullptr, 10}),
                         kind_of(detail::write_op<float>{floats(10), nullptr, 9})};
    CHECK(kinds.size() == 5);
}

TEST_CASE("kernels and user functions of one name are distinguished by code and shape")
{
    jit::launch_head one{.kernel = 1, .shape = {.grid = {4}}};
    detail::user_op mine, other;
    mine.call = [](void*, const bound_op&, native_stream) noexcept {};
    other.call = [](void*, const bound_op& o, native_stream) noexcept { (void)o.op; };
    op_info launch, submit;
    launch.id = jit::launch_op_id;
    launch.work = info_of<jit::launch_op<>>().work;
    submit.id = detail::user_op_id;
    submit.work = [](const void* op) noexcept { return static_cast<const detail::user_op*>(op)->work(); };
    const auto kind = [](const op_info& info, const void* op) {
        struct bare final : detail::request {
            void post() override {}
            void destroy() noexcept override {}
        } r;
        bound_op o{.info = &info, .op = op};
        r.ops = {&o, 1};
        return duration_estimator::kind_of(r);
    };
    auto two = one;
    two.kernel = 2;
    auto wider = one;
    wider.shape.grid.x = 8;
    CHECK(kind(launch, &one) == kind(launch, &one));
    CHECK(kind(launch, &one) != kind(launch, &two));
    CHECK(kind(launch, &one) != kind(launch, &wider));
    CHECK(kind(submit, &mine) != kind(submit, &other));
}

TEST_CASE("an unseen kind has no estimate")
{
    const duration_estimator f;
    CHECK(f.of(42).expected == 0ns);
}

TEST_CASE("the estimate starts at the first duration and follows later ones slowly")
{
    duration_estimator f;
    f.learn(42, 100us, true, false);
    CHECK(f.of(42).expected == 100us);
    CHECK(f.of(43).expected == 0ns);
    f.learn(42, 200us, true, false);
    CHECK(f.of(42).expected == 125us);
    for (int i = 0; i < 50; ++i)
        f.learn(42, 200us, true, false);
    CHECK(f.of(42).expected > 199us);
    CHECK(f.of(42).expected <= 200us);
}

TEST_CASE("kinds that share a table entry evict each other")
{
    duration_estimator f;
    f.learn(1, 100us, true, false);
    f.learn(1 + 256, 7us, true, false);
    CHECK(f.of(1).expected == 0ns);
    CHECK(f.of(257).expected == 7us);
}

TEST_CASE("an estimate is reliable after a few hits, and unreliable after a miss")
{
    duration_estimator f;
    for (int i = 0; i < 4; ++i) {
        CHECK_FALSE(f.of(42).reliable);
        f.learn(42, 100us, true, false);
    }
    CHECK(f.of(42).reliable);
    f.learn(42, 90us, false, false);
    CHECK_FALSE(f.of(42).reliable);
}

// Simulates an op of this length. Its end is seen at once only if it falls into the polling window around the expected
// end; otherwise a notification reports it, `delay` late.
bool is_caught_soon(detail::clock::duration length, detail::clock::duration delay)
{
    constexpr detail::clock::duration least = 80us;
    duration_estimator f;
    for (int i = 0; i < 40; ++i) {
        const auto expected = f.of(7).expected;
        const auto begin = expected - std::max(least, expected / 32);
        const auto end = expected + std::max(least, expected / 16);
        if (expected == 0ns)
            f.learn(7, length + delay, false, false);
        else if (length < begin)
            f.learn(7, std::min(length, begin) + delay, false, false);
        else if (length < end)
            return true;
        else
            f.learn(7, length + delay, false, true);
    }
    return false;
}

TEST_CASE("the estimate finds the end of an op of any length, however late completions are seen")
{
    for (const auto length : {30us, 100us, 1000us, 2700us, 20000us, 300000us, 3000000us})
        for (const auto delay : {1us, 50us, 150us, 400us}) {
            CAPTURE(length.count());
            CAPTURE(delay.count());
            CHECK(is_caught_soon(length, delay));
        }
}

TEST_SUITE_END();

} // namespace test_context_duration_estimator
