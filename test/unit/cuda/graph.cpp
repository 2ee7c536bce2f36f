#include "plan/graph.hpp"

#include "cuda_world.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace test_cuda_graph {

// Graphs over existing buffers on the CUDA backend, over the fake driver. Its destructor reports what was left behind.
namespace {

using namespace coaccel;
using test::context_driver;
using test::cuda_world;
using test::exec;

constexpr std::uint64_t n = 4;

/// A graph in a context without a device.
class loaded_graph {
public:
    loaded_graph(context_driver& d, op_list ops, std::uint64_t id = 1) : driver_(d), id_(id)
    {
        auto made = detail::record_graph(std::move(detail::op_list_access::ops(ops)), "graph 1");
        REQUIRE_MESSAGE(made, made.error().message());
        graph_ = std::move(made).value();
        const auto& p = *graph_.plan;
        const any_ref memory = d.allocate(1, dtype::u8);
        std::vector<any_ref> refs{memory};
        refs.insert(refs.end(), graph_.buffers.begin(), graph_.buffers.end());
        for (const auto slot : p.states)
            refs.push_back(d.allocate(p.slots[slot].bytes(), dtype::u8));
        test::load_request load({id, 1, &p}, refs);
        error = d.outcome_of(load);
        recorded = load.reply.recorded != 0;
        const detail::plan_run_op head{.memory = ref<std::uint8_t>::from_raw(memory), .instance = id, .chain = 1};
        run_ = std::make_unique<detail::graph_run>(p, head, graph_.buffers);
    }

    class request final : public detail::request {
    public:
        request(detail::graph_run& run, exec_options how) : bound_(run.bind())
        {
            options = how;
            ops = {&bound_, 1};
        }
        void post() override {}
        void destroy() noexcept override {}

    private:
        bound_op bound_;
    };

    std::unique_ptr<request> run(exec_options how = {}) { return std::make_unique<request>(*run_, how); }

    error_code unload()
    {
        exec<detail::plan_unload_op> r(detail::plan_unload_op{id_, 1}, exec_options{});
        return driver_.outcome_of(r);
    }

    error_code error;
    bool recorded = false;

private:
    context_driver& driver_;
    std::uint64_t id_;
    detail::recorded_graph graph_;
    std::unique_ptr<detail::graph_run> run_;
};

ref<float> floats(context_driver& d, const std::vector<float>& content)
{
    const auto made = ref<float>::from_raw(d.allocate(content.size(), dtype::f32));
    exec<detail::write_op<float>> r(detail::write_op<float>{made, content.data(), content.size()}, exec_options{});
    REQUIRE_FALSE(d.outcome_of(r));
    return made;
}

std::vector<float> read(context_driver& d, const ref<float>& from)
{
    std::vector<float> made(from.size());
    exec<detail::read_op<float>> r(detail::read_op<float>{from, made.data(), made.size()}, exec_options{});
    REQUIRE_FALSE(d.outcome_of(r));
    return made;
}

template <class Case>
void for_each_graph_context(Case run)
{
    std::uint64_t seed = 0;
    for (const auto& [name, options] : test::context_variants()) {
        const std::string& variant = name;
        CAPTURE(variant);
        cuda_world w(test::fake_cuda::settings{.seed = ++seed});
        w.context = options;
        run(w);
    }
}

TEST_SUITE_BEGIN("graph ops");

TEST_CASE("a run is one launch of one graph, and recording changes no buffer")
{
    for_each_graph_context([](cuda_world& w) {
        context_driver d(w);
        const auto x = floats(d, {1, 2, 3, 4});
        const auto y = floats(d, {0, 0, 0, 0});
        const auto pinned = d.context->memory().pinned_used;
        loaded_graph g(d, op_list()
                              .add(blas::axpy<float>{.x = x, .y = y, .n = n, .alpha = 1})
                              .add(blas::scal<float>{.x = y, .n = n, .alpha = 2}));
        REQUIRE_FALSE(g.error);
        CHECK(g.recorded);
        CHECK(w.driver.executable_graphs() == 1);
        CHECK(w.driver.graphs() == 0);
        CHECK(d.context->memory().pinned_used == pinned);
        CHECK(read(d, y) == std::vector<float>{0, 0, 0, 0});
        const int launches = w.driver.calls("cuGraphLaunch");
        const auto r = g.run();
        CHECK_FALSE(d.outcome_of(*r));
        CHECK(w.driver.calls("cuGraphLaunch") == launches + 1);
        CHECK(read(d, y) == std::vector<float>{2, 4, 6, 8});
        CHECK_FALSE(g.unload());
        CHECK(w.driver.executable_graphs() == 0);
        CHECK(w.driver.violations().empty());
    });
}

TEST_CASE("many runs on several lanes are on the device at once, in order")
{
    for_each_graph_context([](cuda_world& w) {
        context_driver d(w);
        const auto x = floats(d, {1, 1, 1, 1});
        const auto y = floats(d, {0, 0, 0, 0});
        loaded_graph g(d, op_list()
                              .add(blas::scal<float>{.x = y, .n = n, .alpha = 2})
                              .add(blas::axpy<float>{.x = x, .y = y, .n = n, .alpha = 1}));
        REQUIRE_FALSE(g.error);
        std::vector<std::unique_ptr<loaded_graph::request>> runs;
        for (int i = 0; i < 10; ++i) {
            runs.push_back(g.run({.lane = i % 2}));
            d.submit(*runs.back());
        }
        // Behind them all, without waiting.
        exec<detail::plan_unload_op> unload(detail::plan_unload_op{1, 1}, exec_options{});
        d.submit(unload);
        d.run_until([&] { return d.ended.size() == runs.size() + 1; });
        for (const auto& r : runs)
            CHECK_FALSE(d.outcome(*r));
        CHECK_FALSE(d.outcome(unload));
        d.ended.clear();
        CHECK(read(d, y) == std::vector<float>(4, 1023));
        CHECK(w.driver.graph_launches() == 10);
        CHECK(w.driver.violations().empty());
    });
}

TEST_CASE("a graph with an op that cannot be captured runs op by op, in order")
{
    for_each_graph_context([](cuda_world& w) {
        context_driver d(w);
        const auto x = floats(d, {1, 1, 1, 1});
        const auto y = floats(d, {0, 0, 0, 0});
        const auto drawn = floats(d, {0, 0, 0, 0});
        loaded_graph g(d, op_list()
                              .add(blas::scal<float>{.x = y, .n = n, .alpha = 2})
                              .add(rand::uniform<float>{drawn, rand::make_generator()})
                              .add(blas::axpy<float>{.x = x, .y = y, .n = n, .alpha = 1}));
        REQUIRE_FALSE(g.error);
        CHECK_FALSE(g.recorded);
        CHECK(read(d, y) == std::vector<float>{0, 0, 0, 0});
        std::vector<std::unique_ptr<loaded_graph::request>> runs;
        for (int i = 0; i < 5; ++i) {
            runs.push_back(g.run({.lane = i % 2}));
            d.submit(*runs.back());
        }
        d.run_until([&] { return d.ended.size() == runs.size(); });
        for (const auto& r : runs)
            CHECK_FALSE(d.outcome(*r));
        d.ended.clear();
        CHECK(read(d, y) == std::vector<float>(4, 31));
        CHECK(w.driver.graph_launches() == 0);
        CHECK_FALSE(g.unload());
        CHECK(w.driver.violations().empty());
    });
}

TEST_CASE("a launch that fails ends its run only")
{
    for_each_graph_context([](cuda_world& w) {
        context_driver d(w);
        const auto y = floats(d, {0, 0, 0, 0});
        loaded_graph g(d, op_list().add(memory::fill<float>{y, 7}));
        REQUIRE_FALSE(g.error);
        w.driver.fail("cuGraphLaunch", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        const auto bad = g.run();
        CHECK(d.outcome_of(*bad));
        const auto good = g.run();
        CHECK_FALSE(d.outcome_of(*good));
        CHECK(read(d, y) == std::vector<float>(4, 7));
        CHECK_FALSE(g.unload());
    });
}

TEST_SUITE_END();

} // namespace

} // namespace test_cuda_graph
