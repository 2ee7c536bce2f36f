#include "large_run.hpp"
#include "plan_samples.hpp"
#include "support/plan_cases.hpp"
#include "worker/parent/worker_context_factory.hpp"

#include <coaccel/device/device_options.hpp>
#include <coaccel/host/fault_injector.hpp>

#include <boost/asio/io_context.hpp>

// The plan ops in a worker process.
namespace {

class worker_world final : public test::context_world {
public:
    // The io_context, which waits for the worker's signal, does not run.
    worker_world() { context.completion = coaccel::completion::polled; }

    coaccel::detail::context_factory factory() override
    {
        coaccel::worker::source_options o;
        o.setup.kind = static_cast<std::uint8_t>(coaccel::device_kind::host);
        o.setup.host.mode = mode;
        o.setup.host.threads = 3;
        o.how.staging_bytes = std::uint64_t(8) << 20;
        o.faults = &injector;
        return coaccel::worker::make_source(o, io.get_executor()).make;
    }

    void poison() override { injector.poison(); }

    coaccel::host_mode mode = coaccel::host_mode::pool;
    coaccel::fault_injector injector;
    boost::asio::io_context io;
};

} // namespace

std::vector<test::context_setting> test::plan_contexts()
{
    std::vector<context_setting> all;
    for (const auto mode : {host_mode::pool, host_mode::inline_})
        all.push_back({mode == host_mode::pool ? "worker, pool" : "worker, inline", true, [mode] {
                           auto made = std::make_unique<worker_world>();
                           made->mode = mode;
                           return made;
                       }});
    return all;
}

TEST_SUITE_BEGIN("plans in a worker");

TEST_CASE("a plan of many ops is sent in parts and runs")
{
    worker_world w;
    context_driver d(w);
    plan_maker m;
    const auto x = m.floats(slot_kind::input, 4);
    const auto y = m.floats(slot_kind::output, 4);
    m.add(memory::fill<float>{y, 0});
    for (int n = 0; n < 5'000; ++n)
        m.add(blas::axpy<float>{.x = x, .y = y, .n = 4, .alpha = 1});
    const auto data = m.finish();
    test_instance i(d, data, 1, 1);
    REQUIRE_FALSE(i.load());
    plan_run r(i, {{1, 2, 3, 4}});
    CHECK_FALSE(d.outcome_of(*r.request));
    CHECK(r.outputs[0] == std::vector<float>{5'000, 10'000, 15'000, 20'000});
    CHECK_FALSE(i.unload());
}

TEST_CASE("a plan with operands that have no buffer runs")
{
    worker_world w;
    context_driver d(w);
    plan_maker m;
    const auto x = m.floats(slot_kind::input, 4);
    const auto t = m.floats(slot_kind::scratch, 4);
    const auto y = m.floats(slot_kind::output, 8);
    m.add(blas::matmul<float>{.a = x, .b = x, .d = t, .bias = x.first(2), .m = 2, .n = 2, .k = 2});
    blas::gemm_batched<float> list{.m = 2, .n = 1, .k = 2};
    m.add(list.add(t, x.first(2), y.subspan(2, 2)).add(x, x.first(2), y.subspan(6, 2)));
    m.add(memory::copy<float>{t.first(2), y.first(2)});
    m.add(memory::fill<float>{y.subspan(4, 2), -1});
    const auto data = m.finish();
    test_instance i(d, data, 1, 1);
    REQUIRE_FALSE(i.load());
    plan_run r(i, {{1, 2, 3, 4}});
    CHECK_FALSE(d.outcome_of(*r.request));
    // t is [8 12; 16 24] by columns.
    CHECK(r.outputs[0] == std::vector<float>{8, 12, 8 + 2 * 16, 12 + 2 * 24, -1, -1, 1 + 2 * 3, 2 + 2 * 4});
    CHECK_FALSE(i.unload());
}

TEST_CASE("a run with large arguments copies them around the run")
{
    worker_world w;
    context_driver d(w);
    constexpr std::uint64_t n = 307'200, bytes = n * sizeof(float);
    plan_maker m;
    const auto x = m.floats(slot_kind::input, n);
    const auto y = m.floats(slot_kind::output, n);
    m.add(memory::copy<float>{x, y});
    auto data = m.finish();
    // The builder puts nothing into the staged ranges for large arguments.
    data.staged_inputs = {};
    data.staged_outputs = {};
    REQUIRE(data.slots[1].offset == bytes);
    test_instance i(d, data, 1, 1);
    REQUIRE_FALSE(i.load());
    for (int round = 0; round < 3; ++round) {
        test::large_run r(1, 1, i.refs[0], bytes);
        CHECK_FALSE(d.outcome_of(r));
        CHECK(r.out[0] == r.in[0]);
    }
    CHECK_FALSE(i.unload());
}

TEST_CASE("buffers that are released while an instance uses them live until it is unloaded")
{
    worker_world w;
    context_driver d(w);
    const sum_plan plan;
    test_instance i(d, plan.data, 1, 1);
    i.set(i.first_constant(), {1, 2, 3, 4});
    i.set(i.first_state(), {0, 0, 0, 0});
    REQUIRE_FALSE(i.load());
    d.context->release(i.refs[i.first_constant()]);
    plan_run r(i, {{1, 1, 1, 1}});
    CHECK_FALSE(d.outcome_of(*r.request));
    CHECK(r.outputs[0] == std::vector<float>{3, 4, 5, 6});
    CHECK_FALSE(i.unload());
}

TEST_SUITE_END();
