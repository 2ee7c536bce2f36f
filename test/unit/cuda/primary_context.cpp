#include "blocking_ops.hpp"
#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "jit/registry.hpp"
#include "memory_support.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace test_cuda_primary_context {

// All backends on a GPU use its primary context, together with other code in the process.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using cuda_backend = coaccel::cuda::backend;
using test::blocking_op;
using test::context_driver;
using test::cuda_world;
using test::exec;
using test::fake_cuda;
using test::hold;
using test::hold_lane;

cuda_backend::options on(const fake_cuda& driver, int ordinal = 0)
{
    cuda_backend::options o;
    o.ordinal = ordinal;
    o.libraries = cuda::library_tables(&driver.api());
    return o;
}

std::unique_ptr<cuda_backend> make(const fake_cuda& driver, int ordinal = 0)
{
    auto made = cuda_backend::create(on(driver, ordinal));
    REQUIRE(made);
    return std::move(made).value();
}

CUcontext context_of(const fake_cuda& driver, cuda_backend& b)
{
    const auto here = b.enter();
    return driver.current_context();
}

/// A capture of other code in the process, on its own thread and stream in the primary context.
class foreign_capture {
public:
    foreign_capture(const fake_cuda& driver, CUstreamCaptureMode mode) : api_(driver.api())
    {
        REQUIRE(api_.cuDevicePrimaryCtxRetain(&context_, 0) == CUDA_SUCCESS);
        thread_ = std::thread([this, mode] {
            (void)api_.cuCtxPushCurrent(context_);
            (void)api_.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0);
            (void)api_.cuStreamBeginCapture(stream_, mode);
            gate_.pass();
            result_ = api_.cuStreamEndCapture(stream_, &graph_);
            if (graph_)
                (void)api_.cuGraphDestroy(graph_);
            (void)api_.cuStreamDestroy(stream_);
            CUcontext popped = nullptr;
            (void)api_.cuCtxPopCurrent(&popped);
        });
        gate_.wait_for(1);
    }
    foreign_capture(const foreign_capture&) = delete;
    foreign_capture& operator=(const foreign_capture&) = delete;
    ~foreign_capture() { (void)end(); }

    CUresult end()
    {
        if (thread_.joinable()) {
            gate_.open();
            thread_.join();
            (void)api_.cuDevicePrimaryCtxRelease(0);
        }
        return result_;
    }

private:
    const cuda::driver_api& api_;
    test::gate gate_;
    CUcontext context_ = nullptr;
    CUstream stream_ = nullptr;
    CUgraph graph_ = nullptr;
    CUresult result_ = CUDA_ERROR_UNKNOWN;
    std::thread thread_;
};

} // namespace

TEST_SUITE_BEGIN("cuda primary context");

TEST_CASE("backends on one GPU have the same context, with streams of their own")
{
    fake_cuda driver({.devices = 2});
    auto one = make(driver);
    auto same = make(driver);
    auto other = make(driver, 1);
    CHECK(context_of(driver, *one) != nullptr);
    CHECK(context_of(driver, *one) == context_of(driver, *same));
    CHECK(context_of(driver, *one) != context_of(driver, *other));
    // Other code in the process gets this context too.
    CUcontext primary = nullptr;
    CHECK(driver.api().cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
    CHECK(primary == context_of(driver, *one));
    CHECK(driver.api().cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
    CHECK(driver.leaks().front() == "3 retained contexts");
    CHECK(driver.leaks()[1] == "6 streams");
    one.reset();
    {
        const auto here = same->enter();
        CHECK(same->make_stream(priority::normal));
    }
}

TEST_CASE("contexts that come and go beside a live one leave nothing behind")
{
    cuda_world w;
    w.driver.add_kernel("nothing", [](const fake_cuda::launch&, void**) {}, {});
    auto image = std::make_shared<jit::image>();
    image->name = image->symbol = "nothing";
    image->code = "code";
    const jit::kernel nothing(jit::register_image(std::move(image)));
    test::plan_maker maker;
    const auto from = maker.floats(slot_kind::input, 4);
    const auto to = maker.floats(slot_kind::output, 4);
    const detail::plan_data plan = maker.add(memory::copy<float>{from, to}).finish();
    std::uint64_t instances = 0;
    auto use = [&](context_driver& d) {
        blocking_op all(d);
        all.run();
        CHECK(all.failures == 0);
        const auto x = d.floats(64);
        exec<jit::launch_op<>> kernel(jit::launch(nothing, {}), exec_options{});
        CHECK_FALSE(d.outcome_of(kernel));
        exec<rand::uniform<float>> numbers(rand::uniform<float>{.dst = x, .from = rand::make_generator()},
                                           exec_options{});
        CHECK_FALSE(d.outcome_of(numbers));
        test::test_instance instance(d, plan, ++instances, 1);
        REQUIRE_FALSE(instance.load());
        CHECK(instance.recorded);
        test::plan_run run(instance, {{1, 2, 3, 4}});
        CHECK_FALSE(d.outcome_of(*run.request));
        CHECK(run.outputs[0] == std::vector<float>{1, 2, 3, 4});
        // The buffers and the instance are still there at the end.
    };
    context_driver live(w);
    use(live);
    const auto before = w.driver.leaks();
    const auto events = w.driver.events();
    const auto handles = w.blas.handles();
    const auto registered = w.driver.registered();
    CHECK(before.front() == "1 retained contexts");
    for (int i = 0; i < 100; ++i) {
        CAPTURE(i);
        w.context.completion = std::array{completion::adaptive, completion::host_fn, completion::polled,
                                          completion::sync}[static_cast<std::size_t>(i) % 4];
        {
            context_driver brief(w);
            use(brief);
            CHECK(w.driver.leaks() != before);
        }
        REQUIRE(w.driver.leaks() == before);
        REQUIRE(w.driver.events() == events);
        REQUIRE(w.driver.registered() == registered);
        REQUIRE(w.blas.handles() == handles);
    }
    use(live);
}

TEST_CASE("a backend releases everything it has made, in use or not")
{
    fake_cuda driver;
    test::told told;
    auto live = make(driver);
    const auto before = driver.leaks();
    std::vector<std::byte> callers(4096);
    for (int i = 0; i < 10; ++i) {
        auto b = make(driver);
        cuda_backend::event held;
        {
            const auto here = b->enter();
            b->listen(told.call());
            auto s = b->make_stream(priority::normal).value();
            CHECK_FALSE(b->record(held, s));
            CHECK_FALSE(b->notify(held, told.call()));
            CHECK_FALSE(b->pin(callers));
            for (const auto kind : {memory_kind::device, memory_kind::managed})
                for (;;) {
                    const int rung = told.count();
                    const auto memory = b->allocate(s, 4096, kind);
                    REQUIRE(memory);
                    if (memory.value())
                        break;
                    told.wait_for(rung + 1);
                }
        }
        held = {};
        b.reset();
        REQUIRE(driver.leaks() == before);
    }
}

TEST_CASE("a creation that fails half-way beside a live backend leaves nothing behind")
{
    fake_cuda driver;
    auto live = make(driver);
    const auto before = driver.leaks();
    for (const char* name : {"cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute", "cuCtxGetStreamPriorityRange",
                             "cuStreamCreateWithPriority", "cuMemPoolCreate", "cuMemPoolSetAttribute"})
        for (int n = 1; n <= 2; ++n) {
            CAPTURE(name);
            CAPTURE(n);
            driver.fail(name, CUDA_ERROR_NOT_SUPPORTED, n);
            (void)cuda_backend::create(on(driver));
            driver.forgive();
            CHECK(driver.leaks() == before);
        }
}

TEST_CASE("a backend ends without waiting for other work in the context")
{
    // Before the driver, whose threads read it until they end.
    std::atomic<bool> open{false};
    fake_cuda driver;
    auto busy = make(driver);
    {
        const auto here = busy->enter();
        const auto before = driver.streams().size();
        REQUIRE(busy->make_stream(priority::normal));
        driver.block(driver.streams()[before].handle, [&] { return open.load(); });
    }
    const auto before = driver.leaks();
    {
        auto idle = make(driver);
        const auto here = idle->enter();
        auto s = idle->make_stream(priority::normal).value();
        cuda_backend::event e;
        CHECK_FALSE(idle->record(e, s));
    }
    CHECK(driver.leaks() == before);
    open = true;
}

TEST_CASE("a context that hangs fails alone")
{
    cuda_world w;
    context_driver neighbour(w);
    const auto y = neighbour.floats(4);
    test::gate never;
    {
        w.context.hang_timeout = 20ms;
        context_driver hangs(w);
        const auto x = hangs.floats(4);
        hold<inout<float>> hung(hold_lane{&w, never}, std::tuple(inout<float>(x)));
        hangs.submit(hung);
        hangs.run_until([&] { return hangs.losses > 0; });
        CHECK(hangs.outcome(hung) == errc::context_lost);
        w.context.hang_timeout = {};
        exec<memory::fill<float>> other(memory::fill<float>{y, 2.0f}, exec_options{});
        CHECK_FALSE(neighbour.outcome_of(other));
    }
    exec<memory::fill<float>> later(memory::fill<float>{y, 3.0f}, exec_options{});
    CHECK_FALSE(neighbour.outcome_of(later));
    CHECK(neighbour.read(y) == std::vector<float>(4, 3.0f));
    CHECK(neighbour.losses == 0);
    context_driver fresh(w);
    const auto z = fresh.floats(4);
    fresh.write(z, {1, 2, 3, 4});
    CHECK(fresh.read(z) == std::vector<float>{1, 2, 3, 4});
    never.open();
    CHECK(w.driver.violations().empty());
}

TEST_CASE("a reset of the primary context is context_lost for every context, and no call follows it")
{
    cuda_world w;
    context_driver one(w), other(w);
    const auto x = one.floats(4);
    const auto y = other.floats(4);
    w.driver.reset_context();
    exec<memory::fill<float>> fill(memory::fill<float>{x, 1.0f}, exec_options{});
    CHECK(one.outcome_of(fill) == errc::context_lost);
    one.run_until([&] { return one.losses == 1; });
    CHECK(one.reason == fault::context_lost);
    exec<memory::fill<float>> second(memory::fill<float>{y, 1.0f}, exec_options{});
    CHECK(other.outcome_of(second) == errc::context_lost);
    other.run_until([&] { return other.losses == 1; });
}

TEST_CASE("an idle backend notices a reset of the primary context")
{
    fake_cuda driver;
    auto b = make(driver);
    const auto here = b->enter();
    CHECK_FALSE(b->status());
    driver.reset_context();
    CHECK(b->status() == cuda::make_error(CUDA_ERROR_INVALID_CONTEXT));
    CHECK(cuda_backend::classify(b->status()) == fault::context_lost);
    CHECK(b->dead());
}

TEST_CASE("a backend does not invalidate the stream captures of other code")
{
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL})
        for (const auto how : {completion::adaptive, completion::host_fn, completion::polled, completion::sync}) {
            CAPTURE(int(mode));
            CAPTURE(how);
            auto w = test::world_with(how);
            foreign_capture theirs(w->driver, mode);
            {
                context_driver d(*w);
                blocking_op all(d);
                all.run();
                CHECK(all.failures == 0);
            }
            CHECK(theirs.end() == CUDA_SUCCESS);
        }
}

TEST_CASE("the capture mode of a thread is relaxed while it is in the context, and then as before")
{
    fake_cuda driver;
    auto b = make(driver);
    CHECK(driver.capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL);
    auto mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CHECK(driver.api().cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
    {
        const auto outer = b->enter();
        CHECK(driver.capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED);
        {
            const auto inner = b->enter();
            CHECK(driver.capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED);
        }
        CHECK(driver.capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED);
    }
    CHECK(driver.capture_mode() == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST_SUITE_END();

} // namespace test_cuda_primary_context
