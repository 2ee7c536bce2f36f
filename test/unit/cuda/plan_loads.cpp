#include "cuda/driver/error.hpp"
#include "cuda_world.hpp"
#include "device/plan_list.hpp"
#include "support/example_plans.hpp"
#include "support/plan_context.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace test_cuda_plan_loads {

// Loads that do not end well, by the list of plans of a device and a context on the fake driver, whose destructor
// reports what was left behind.
namespace {

using namespace coaccel;
using detail::loaded_plan;
using test::context_driver;
using test::cuda_world;
using test::fake_cuda;

/// What a device does with the requests of its plans.
class plan_loader {
public:
    plan_loader(cuda_world& w, context_driver& d) : world_(w), driver_(d) {}
    plan_loader(const plan_loader&) = delete;
    plan_loader& operator=(const plan_loader&) = delete;

    std::shared_ptr<loaded_plan> add(const plan_description& what)
    {
        auto made = std::make_shared<loaded_plan>(what, plan_options{.instances = 1});
        plans_.add(made);
        return made;
    }

    /// Submits the next request. False: there is nothing to do.
    bool begin()
    {
        part_ = plans_.next();
        if (part_)
            driver_.submit(*part_);
        return part_ != nullptr;
    }

    bool is_recording() const { return part_ && part_->ops.front().info->id == detail::plan_load_id; }
    bool has_ended() const { return driver_.has_ended(*part_); }

    error_code end()
    {
        driver_.run_until([&] { return has_ended(); });
        const auto ec = driver_.outcome(*part_);
        driver_.ended.erase(part_);
        const auto news = plans_.finished(*std::exchange(part_, nullptr), ec);
        for (const any_ref& r : news.unused)
            driver_.context->release(r);
        if (loaded_plan* const p = news.extended)
            p->pool.add(static_cast<std::uint32_t>(p->instances.size() - 1));
        CHECK_FALSE(news.unload_error);
        return news.error;
    }

    /// Does everything there is to do, and returns the first error.
    error_code run()
    {
        error_code first;
        while (begin())
            if (const auto ec = end(); ec && !first)
                first = ec;
        return first;
    }

    error_code load(const plan_description& what)
    {
        const auto p = add(what);
        return run();
    }

    void remove_all()
    {
        for (const auto& p : plans_.all())
            p->closing = true;
        CHECK_FALSE(run());
        CHECK(plans_.empty());
    }

    /// The context is gone.
    void forget()
    {
        delete std::exchange(part_, nullptr);
        (void)plans_.forget_context();
    }

    /// What plans may hold on the device.
    struct usage {
        std::uint64_t memory;
        std::uint64_t pinned;
        std::size_t graphs;
        std::size_t executables;

        friend bool operator==(const usage&, const usage&) = default;
    };

    usage now() const
    {
        const auto m = driver_.context->memory();
        return {m.used, m.pinned_used, world_.driver.graphs(), world_.driver.executable_graphs()};
    }

    /// Waits until as much is used as before.
    void check_back(const usage& before) const
    {
        driver_.run_until([&] { return now().memory <= before.memory; });
        CHECK(now() == before);
    }

private:
    cuda_world& world_;
    context_driver& driver_;
    detail::plan_list plans_;
    detail::load_part* part_ = nullptr;
};

/// Runs a loaded plan of test::axpy_plan.
void check_runs(context_driver& d, const loaded_plan& p)
{
    REQUIRE(p.instances.size() == 1);
    std::vector<float> x(test::plan_elements, 1), y(test::plan_elements);
    const auto& data = p.data;
    const detail::run_argument in{reinterpret_cast<std::byte*>(x.data()),
                                  {data.slots[data.inputs[0]].offset, x.size() * sizeof(float)}};
    const detail::run_argument out{reinterpret_cast<std::byte*>(y.data()),
                                   {data.slots[data.outputs[0]].offset, y.size() * sizeof(float)}};
    const detail::plan_run_op op{.memory = ref<std::uint8_t>::from_raw(p.instances[0].memory),
                                 .instance = p.instances[0].id,
                                 .chain = p.instances[0].chain,
                                 .inputs = &in,
                                 .outputs = &out,
                                 .input_count = 1,
                                 .output_count = 1};
    test::exec<detail::plan_run_op> run(op, exec_options{});
    CHECK_FALSE(d.outcome_of(run));
    CHECK(y == std::vector<float>(test::plan_elements, 7));
}

/// Loads the plan, runs it and unloads it.
void check_works(plan_loader& l, context_driver& d)
{
    const auto p = l.add(test::axpy_plan());
    REQUIRE_FALSE(l.run());
    check_runs(d, *p);
    l.remove_all();
}

constexpr std::uint64_t limit = std::uint64_t(1) << 20;

/// A plan with a slot of this kind that is larger than the limit, and with smaller ones.
plan_description large_plan(slot_kind kind)
{
    constexpr std::size_t little = 1024;
    const auto size_of_slot = [&](slot_kind k) { return k == kind ? 2 * limit / sizeof(float) : little; };
    plan_builder b("large");
    const auto x = b.input<float>(size_of_slot(slot_kind::input));
    const auto first = b.constant<float>(std::vector<float>(little, 1));
    const auto w = b.constant<float>(std::vector<float>(size_of_slot(slot_kind::constant), 2));
    const auto t = b.scratch<float>(size_of_slot(slot_kind::scratch));
    const auto s = b.state<float>(size_of_slot(slot_kind::state));
    const auto y = b.output<float>(little);
    b.add(memory::copy<float>{x.first(little), t.first(little)});
    b.add(memory::copy<float>{first, s.first(little)});
    b.add(memory::copy<float>{w.first(little), s.first(little)});
    b.add(memory::copy<float>{t.first(little), y});
    return b.finish().value();
}

/// Other code of the process that queries every stream again and again. Such a query invalidates the capture that the
/// stream is in.
class careless_code {
public:
    explicit careless_code(const fake_cuda& driver) : driver_(driver), thread_([this] { query(); }) {}
    careless_code(const careless_code&) = delete;
    careless_code& operator=(const careless_code&) = delete;
    ~careless_code()
    {
        stop_ = true;
        thread_.join();
    }

    /// How often it has met a capture.
    int hits() const { return hits_; }

private:
    void query()
    {
        const auto& api = driver_.api();
        CUcontext context = nullptr;
        (void)api.cuDevicePrimaryCtxRetain(&context, 0);
        (void)api.cuCtxPushCurrent(context);
        while (!stop_)
            for (const auto& s : driver_.streams())
                if (api.cuStreamQuery(s.handle) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
                    ++hits_;
        (void)api.cuCtxPopCurrent(&context);
        (void)api.cuDevicePrimaryCtxRelease(0);
    }

    const fake_cuda& driver_;
    std::atomic<bool> stop_{false};
    std::atomic<int> hits_{0};
    std::thread thread_;
};

} // namespace

TEST_SUITE_BEGIN("cuda plan loads");

TEST_CASE("a plan that is larger than the memory is out_of_memory, and leaves nothing")
{
    for (const auto kind : {slot_kind::input, slot_kind::constant, slot_kind::scratch, slot_kind::state}) {
        CAPTURE(to_string(kind));
        cuda_world w;
        REQUIRE(w.limit_memory(limit));
        context_driver d(w);
        plan_loader l(w, d);
        check_works(l, d);
        const auto before = l.now();
        for (int again = 0; again < 3; ++again) {
            CHECK(l.load(large_plan(kind)) == errc::out_of_memory);
            l.remove_all();
            l.check_back(before);
        }
        check_works(l, d);
        CHECK(w.driver.violations().empty());
    }
}

TEST_CASE("a load that is cancelled at any point of its recording leaves nothing, and the device goes on")
{
    cuda_world w;
    context_driver d(w);
    plan_loader l(w, d);
    check_works(l, d);
    const auto before = l.now();
    int cancelled = 0;
    // Until the recording ends before so many calls of the driver.
    for (int calls = 0;; ++calls) {
        CAPTURE(calls);
        REQUIRE(calls < 500);
        const auto p = l.add(test::axpy_plan());
        while (l.begin() && !l.is_recording())
            REQUIRE_FALSE(l.end());
        REQUIRE(l.is_recording());
        const int begun = w.driver.calls();
        d.run_until([&] { return l.has_ended() || w.driver.calls() >= begun + calls; });
        const bool complete = l.has_ended();
        cancelled += complete ? 0 : 1;
        // As device_core does for a call that is cancelled.
        p->closing = true;
        CHECK_FALSE(l.end());
        CHECK_FALSE(l.run());
        CHECK(p->instances.empty());
        l.check_back(before);
        if (complete)
            break;
    }
    CHECK(cancelled > 5);
    check_works(l, d);
    CHECK(w.driver.violations().empty());
}

TEST_CASE("a context that is dropped at any point of a recording leaves nothing")
{
    for (int calls = 0; calls < 40; ++calls) {
        CAPTURE(calls);
        cuda_world w;
        context_driver d(w);
        detail::async_op_list left;
        {
            plan_loader l(w, d);
            const auto p = l.add(test::axpy_plan());
            while (l.begin() && !l.is_recording())
                REQUIRE_FALSE(l.end());
            const int begun = w.driver.calls();
            d.run_until([&] { return l.has_ended() || w.driver.calls() >= begun + calls; });
            d.context->drop(left);
            while (left.pop_front())
                ;
            l.forget();
        }
    }
}

TEST_CASE("captures that other code invalidates cost an error at most, and leave nothing")
{
    cuda_world w;
    context_driver d(w);
    plan_loader l(w, d);
    check_works(l, d);
    const auto before = l.now();
    {
        const careless_code other(w.driver);
        for (int i = 0; i < 500 && other.hits() < 10; ++i) {
            const auto p = l.add(test::axpy_plan());
            if (const auto ec = l.run())
                CHECK(ec == cuda::make_error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
            else
                check_runs(d, *p);
            l.remove_all();
        }
    }
    l.check_back(before);
    check_works(l, d);
    CHECK(w.driver.violations().empty());
}

TEST_SUITE_END();

} // namespace test_cuda_plan_loads
