#include "plan_samples.hpp"
#include "support/host_world.hpp"
#include "support/op_frames.hpp"
#include "worker/child/received_kernels.hpp"
#include "worker/child/remote_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

namespace test_worker_plan_requests {

// Loads, runs and unloads of plans in the worker.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::plan_unload_op;
using step = remote_request::plan_step;

struct fixture {
    fixture()
    {
        load.head.id = 42;
        load.instance = 1;
        load.chain = 2;
        load.refs.push_back(driver.allocate(plan->instance_bytes, dtype::u8));
        for (const auto* kind : {&plan->constants, &plan->states, &plan->states})
            for (const auto i : *kind)
                load.refs.push_back(driver.allocate(plan->slots[i].bytes(), dtype::u8));
        REQUIRE(instances.add(1, {.plan = plan, .chain = 2, .refs = load.refs}));
        run.head.id = 43;
        run.memory = load.refs[0];
        run.instance = 1;
        run.chain = 2;
        const auto& in = plan->slots[plan->inputs[0]];
        run.inputs = {{{in.offset, in.bytes()}, 0}};
        std::uint64_t at = 512;
        for (const auto i : plan->outputs) {
            run.outputs.push_back({{plan->slots[i].offset, plan->slots[i].bytes()}, at});
            at += 512;
        }
    }

    void fill_constant(float value)
    {
        const std::vector<float> data(4, value);
        using write = detail::write_op<std::uint8_t>;
        test::exec<write> r(
            write{ref<std::uint8_t>::from_raw(load.refs[1]), reinterpret_cast<const std::uint8_t*>(data.data()), 16},
            exec_options{});
        REQUIRE_FALSE(driver.outcome_of(r));
    }

    error_code load_run() { return request.load(run, instances, memory); }

    std::vector<std::byte> replies()
    {
        encoder out;
        request.put_replies(out, true);
        return {out.record().begin(), out.record().end()};
    }

    float* floats(std::size_t at) { return reinterpret_cast<float*>(memory.data() + at); }

    test::host_world world{host_options{.mode = host_mode::inline_}};
    test::context_driver driver{world};
    const std::shared_ptr<const detail::plan_data> plan = test::sample_plan();
    std::vector<std::byte> memory = std::vector<std::byte>(2048);
    plan_instances instances;
    received_kernels kernels;
    load_frame load;
    run_frame run;
    remote_request request;
};

} // namespace

TEST_SUITE_BEGIN("remote_request");

TEST_CASE("a plan is loaded, run with arguments in the staging area, and unloaded")
{
    fixture f;
    f.fill_constant(1);
    f.request.load(f.load, f.plan);
    CHECK(f.request.id() == 42);
    CHECK(f.request.step() == step::load);
    CHECK(f.request.instance() == 1);
    REQUIRE_FALSE(f.driver.outcome_of(f.request));
    CHECK(f.replies() == std::vector<std::byte>(1, std::byte{1}));

    std::fill_n(f.floats(0), 4, 3.0f);
    REQUIRE_FALSE(f.load_run());
    CHECK(f.request.id() == 43);
    CHECK(f.request.step() == step::run);
    CHECK(f.request.bytes == 16 + 16 + 4);
    REQUIRE_FALSE(f.driver.outcome_of(f.request));
    CHECK(f.replies().empty());
    CHECK(*f.floats(512) == 7.0f);
    CHECK(*f.floats(1024) == 4 * 49.0f);

    submit_frame frame;
    const plan_unload_op unload{.instance = 1, .chain = 2};
    frame.ops = {test::plain(unload)};
    frame.size = 1;
    REQUIRE_FALSE(f.request.load(frame, *f.driver.context, f.kernels, f.memory));
    CHECK(f.request.step() == step::unload);
    CHECK(f.request.unload().chain == 2);
    CHECK_FALSE(f.driver.outcome_of(f.request));

    // The request is reused for something else.
    const memory::trim trim;
    frame.ops = {test::plain(trim)};
    REQUIRE_FALSE(f.request.load(frame, *f.driver.context, f.kernels, f.memory));
    CHECK(f.request.step() == step::none);
    CHECK_FALSE(f.driver.outcome_of(f.request));
}

TEST_CASE("a run of an instance that is not loaded is an error of the run")
{
    fixture f;
    f.run.instance = 5;
    const auto ec = f.load_run();
    CHECK(ec == errc::invalid_argument);
    CHECK(ec.message() == "plan.run: instance 5 is not loaded");
    f.run.instance = 1;
    CHECK_FALSE(f.load_run());
    CHECK_FALSE(f.instances.begin_unload({.instance = 1, .chain = 2}));
    CHECK(f.load_run() == errc::invalid_argument);
}

TEST_CASE("malformed runs are refused")
{
    struct wrong {
        const char* what;
        void (*change)(fixture&);
    };
    constexpr auto huge = ~std::uint64_t(0);
    static constexpr wrong all[] = {
        {"another chain", [](fixture& f) { ++f.run.chain; }},
        {"another buffer", [](fixture& f) { f.run.memory = f.load.refs[1]; }},
        {"another part of the buffer", [](fixture& f) { f.run.memory.offset = 1; }},
        {"an input among the outputs", [](fixture& f) { f.run.inputs[0].where = f.run.outputs[0].where; }},
        {"an input across the end", [](fixture& f) { f.run.inputs[0].where.bytes += 1; }},
        {"an input far away", [](fixture& f) { f.run.inputs[0].where.offset = huge; }},
        {"an output among the inputs", [](fixture& f) { f.run.outputs[0].where = f.run.inputs[0].where; }},
        {"an output behind the end", [](fixture& f) { f.run.outputs[1].where.offset += 8; }},
        {"an input outside the staging area", [](fixture& f) { f.run.inputs[0].offset = 2048 - 15; }},
        {"an output outside the staging area", [](fixture& f) { f.run.outputs[0].offset = 2049; }},
        {"an output far outside", [](fixture& f) { f.run.outputs[0].offset = huge; }},
    };
    for (const auto& w : all) {
        INFO(std::string(w.what));
        fixture f;
        REQUIRE_FALSE(f.load_run());
        w.change(f);
        CHECK(f.load_run() == errc::worker_corrupted);
    }
}

TEST_CASE("runs and loads as plain ops are refused, and so is an unload with other ops")
{
    fixture f;
    submit_frame frame;
    frame.size = 1;
    const detail::plan_run_op run{};
    frame.ops = {test::plain(run)};
    CHECK(f.request.load(frame, *f.driver.context, f.kernels, f.memory));
    frame.ops[0].id = detail::plan_load_id;
    CHECK(f.request.load(frame, *f.driver.context, f.kernels, f.memory));
    const plan_unload_op unload{.instance = 1, .chain = 2};
    frame.ops = {test::plain(unload), test::plain(unload)};
    frame.size = 2;
    CHECK(f.request.load(frame, *f.driver.context, f.kernels, f.memory) == errc::worker_corrupted);
}

TEST_SUITE_END();

} // namespace test_worker_plan_requests
