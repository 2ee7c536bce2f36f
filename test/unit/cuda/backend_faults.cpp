#include "blocking_ops.hpp"
#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "jit/registry.hpp"
#include "memory_support.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace test_cuda_backend_faults {

namespace {

using namespace coaccel;
using cuda_backend = coaccel::cuda::backend;
using test::allocate_request;
using test::blocking_op;
using test::context_driver;
using test::cuda_world;
using test::exec;
using test::fake_cuda;
using test::world_with;

cuda_backend::options on(const fake_cuda& driver)
{
    cuda_backend::options o;
    o.libraries = cuda::library_tables(&driver.api());
    return o;
}

std::map<std::string_view, int> calls_of(const fake_cuda& driver)
{
    std::map<std::string_view, int> made;
    for (const auto name : fake_cuda::function_names())
        if (const int n = driver.calls(name))
            made[name] = n;
    return made;
}

/// Functions that release resources or make the context current. Their failures cannot be handled.
bool is_hopeless(std::string_view function)
{
    static const std::set<std::string_view> all{"cuDevicePrimaryCtxRelease",
                                                "cuThreadExchangeStreamCaptureMode",
                                                "cuCtxSetCurrent",
                                                "cuCtxPopCurrent",
                                                "cuCtxPushCurrent",
                                                "cuStreamDestroy",
                                                "cuEventDestroy",
                                                "cuMemPoolDestroy",
                                                "cuMemFreeAsync",
                                                "cuMemFree",
                                                "cuMemHostUnregister",
                                                "cuModuleUnload"};
    return all.contains(function);
}

} // namespace

TEST_SUITE_BEGIN("cuda backend faults");

TEST_CASE("any driver call that fails during creation gives an error, and nothing leaks")
{
    std::map<std::string_view, int> made;
    {
        fake_cuda driver;
        auto b = cuda_backend::create(on(driver));
        REQUIRE(b);
        made = calls_of(driver);
    }
    CHECK(made.size() > 8);
    for (const auto& one : made) {
        const auto name = one.first;
        const int count = one.second;
        for (int n = 1; n <= count; ++n) {
            for (const auto code : {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_LAUNCH_FAILED}) {
                CAPTURE(name);
                CAPTURE(n);
                CAPTURE(code);
                fake_cuda driver;
                driver.fail(name, code, n);
                auto b = cuda_backend::create(on(driver));
                if (is_hopeless(name)) {
                    (void)driver.verdict();
                    continue;
                }
                REQUIRE_FALSE(b);
                CHECK(b.error() == cuda::make_error(code));
                CHECK(driver.current_depth() == 0);
                CHECK(driver.verdict() == "");
            }
        }
    }
}

TEST_CASE("after a fatal error, found by any call, no driver call is made")
{
    struct row {
        int code;
        fault kind;
    };
    const row rows[] = {
        {CUDA_ERROR_ILLEGAL_ADDRESS, fault::context_lost},
        {CUDA_ERROR_LAUNCH_TIMEOUT, fault::context_lost},
        {CUDA_ERROR_ASSERT, fault::context_lost},
        {CUDA_ERROR_HARDWARE_STACK_ERROR, fault::context_lost},
        {CUDA_ERROR_ILLEGAL_INSTRUCTION, fault::context_lost},
        {CUDA_ERROR_MISALIGNED_ADDRESS, fault::context_lost},
        {CUDA_ERROR_INVALID_ADDRESS_SPACE, fault::context_lost},
        {CUDA_ERROR_INVALID_PC, fault::context_lost},
        {CUDA_ERROR_LAUNCH_FAILED, fault::context_lost},
        {721, fault::context_lost},
        {CUDA_ERROR_UNKNOWN, fault::context_lost},
        {CUDA_ERROR_ECC_UNCORRECTABLE, fault::device_lost},
        {CUDA_ERROR_NVLINK_UNCORRECTABLE, fault::device_lost},
    };
    using call = std::function<error_code(cuda_backend&, cuda_backend::stream&, cuda_backend::event&)>;
    const std::map<std::string, call> calls{
        {"query", [](auto& b, auto&, auto& e) { return b.query(e).error(); }},
        {"synchronize", [](auto& b, auto&, auto& e) { return b.synchronize(e); }},
        {"record", [](auto& b, auto& s, auto& e) { return b.record(e, s); }},
        {"wait", [](auto& b, auto& s, auto& e) { return b.wait(s, e); }},
        {"notify", [](auto& b, auto&, auto& e) { return b.notify(e, {[](void*) noexcept {}, nullptr}); }},
        {"stream", [](auto& b, auto&, auto&) { return b.make_stream(priority::low).error(); }},
        {"status", [](auto& b, auto&, auto&) { return b.status(); }},
    };
    for (const auto& r : rows) {
        for (const auto& one : calls) {
            const std::string& name = one.first;
            const call& first = one.second;
            CAPTURE(r.code);
            CAPTURE(name);
            fake_cuda driver;
            auto b = cuda_backend::create(on(driver)).value();
            std::optional<cuda_backend::stream> lane;
            cuda_backend::event e;
            error_code ec;
            {
                const auto here = b->enter();
                lane = b->make_stream(priority::normal).value();
                CHECK_FALSE(b->record(e, *lane));
                CHECK_FALSE(b->status());
                driver.kill(static_cast<CUresult>(r.code));
                ec = first(*b, *lane, e);
                CHECK(ec.value() == r.code);
                CHECK(cuda_backend::classify(ec) == r.kind);
                CHECK(b->status() == ec);
            }
            auto& s = *lane;
            const int before = driver.calls();
            {
                const auto again = b->enter();
                for (const auto& [other, repeat] : calls)
                    CHECK(repeat(*b, s, e) == ec);
                CHECK(b->allocate(s, 8, memory_kind::device).error() == ec);
                b->release(s, &e, 8, memory_kind::device);
                (void)b->memory();
            }
            e = {};
            b.reset();
            CHECK(driver.calls() == before);
            CHECK(driver.verdict() == "");
        }
    }
}

TEST_CASE("no notification arrives after a dead context is destroyed")
{
    fake_cuda driver;
    test::told told;
    auto b = cuda_backend::create(on(driver)).value();
    {
        const auto here = b->enter();
        const std::size_t before = driver.streams().size();
        auto s = b->make_stream(priority::normal).value();
        driver.hold(driver.streams()[before].handle);
        cuda_backend::event e;
        CHECK_FALSE(b->record(e, s));
        CHECK_FALSE(b->notify(e, told.call()));
        driver.kill(CUDA_ERROR_ASSERT);
        CHECK(b->status() == fault::context_lost);
    }
    b.reset();
    CHECK(told.count() == 0);
}

namespace {

constexpr completion strategies[] = {completion::adaptive, completion::host_fn, completion::polled, completion::sync};

std::map<std::string_view, int> calls_of_blocking_op(completion how)
{
    auto w = world_with(how);
    {
        context_driver d(*w);
        blocking_op e(d);
        e.run();
        CHECK(e.failures == 0);
    }
    return calls_of(w->driver);
}

constexpr int most_tried = 6;

} // namespace

TEST_CASE("a driver call that fails without a fault fails at most one op")
{
    for (const auto how : strategies) {
        for (const auto& one : calls_of_blocking_op(how)) {
            const auto name = one.first;
            const int count = one.second;
            if (is_hopeless(name))
                continue;
            for (int n = 1; n <= std::min(count, most_tried); ++n) {
                CAPTURE(how);
                CAPTURE(name);
                CAPTURE(n);
                auto w = world_with(how);
                context_driver d(*w);
                w->driver.fail(name, CUDA_ERROR_NOT_SUPPORTED, n);
                blocking_op e(d);
                e.run();
                CHECK(e.failures <= 1);
                for (const auto& ec : e.errors)
                    CHECK((ec == cuda::make_error(CUDA_ERROR_NOT_SUPPORTED) || ec == errc::context_lost));
                if (d.losses > 0) {
                    // The completion of this work cannot be determined, so the context is abandoned.
                    CHECK((name == "cuEventRecord" || name == "cuEventCreate" || name == "cuStreamWaitEvent"));
                    const auto found = w->driver.violations();
                    CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front()));
                    continue;
                }
                w->driver.forgive();
                blocking_op again(d);
                again.run();
                CHECK(again.failures == 0);
            }
        }
    }
}

TEST_CASE("an op whose stream wait failed does not break the order of later ops")
{
    cuda_world w;
    context_driver d(w);
    const auto x = d.floats(4);
    const auto y = d.floats(4);
    d.write(x, {1, 1, 1, 1});
    d.write(y, {0, 0, 0, 0});
    exec<memory::fill<float>> slow(memory::fill<float>{x, 5.0f}, exec_options{.lane = 0});
    exec<memory::copy<float>> failing(memory::copy<float>{x, y}, exec_options{.lane = 1});
    exec<memory::copy<float>> next(memory::copy<float>{x, y}, exec_options{.lane = 1});
    w.driver.hold_all(true);
    d.submit(slow);
    for (const auto& s : w.driver.streams())
        if (w.driver.pending(s.handle) > 0)
            w.driver.hold(s.handle);
    w.driver.fail("cuStreamWaitEvent", CUDA_ERROR_NOT_SUPPORTED);
    d.submit(failing);
    d.submit(next);
    w.driver.hold_all(false);
    // Work that need not wait runs before the first op.
    w.driver.run_all();
    for (const auto& s : w.driver.streams())
        w.driver.let_go(s.handle);
    d.run_until([&] { return d.has_ended(slow) && d.has_ended(failing) && d.has_ended(next); });
    CHECK(d.outcome(failing));
    if (!d.outcome(next))
        CHECK(d.read(y) == std::vector<float>(4, 5.0f));
    // An abandoned context is left as it is.
    if (d.losses > 0)
        CHECK(w.driver.violations().empty());
}

TEST_CASE("a fatal error at any driver call fails the ops with context_lost, and no call follows it")
{
    for (const auto how : strategies) {
        for (const auto& one : calls_of_blocking_op(how)) {
            const auto name = one.first;
            const int count = one.second;
            if (is_hopeless(name))
                continue;
            for (int n = 1; n <= std::min(count, most_tried); ++n) {
                CAPTURE(how);
                CAPTURE(name);
                CAPTURE(n);
                auto w = world_with(how);
                context_driver d(*w);
                w->driver.fail(name, CUDA_ERROR_MISALIGNED_ADDRESS, n);
                blocking_op e(d);
                e.run();
                for (const auto& ec : e.errors)
                    CHECK(ec == errc::context_lost);
                CHECK(d.losses <= 1);
                if (d.losses > 0)
                    CHECK(d.reason == fault::context_lost);
            }
        }
    }
}

TEST_CASE("a fault at any piece of work ends every outstanding op")
{
    for (const auto how : strategies) {
        for (int n = 1; n <= 40; ++n) {
            CAPTURE(how);
            CAPTURE(n);
            auto w = world_with(how);
            context_driver d(*w);
            w->driver.kill_at(CUDA_ERROR_ILLEGAL_ADDRESS, n);
            blocking_op e(d);
            e.run();
            CHECK(e.failures <= 1);
            for (const auto& ec : e.errors)
                CHECK(ec == errc::context_lost);
        }
    }
}

TEST_CASE("out of memory at any allocation fails the op, and the context continues")
{
    const auto made = calls_of_blocking_op(completion::adaptive);
    for (const std::string_view name : {"cuMemAllocFromPoolAsync", "cuMemAllocManaged", "cuMemHostRegister"}) {
        REQUIRE(made.contains(name));
        for (int n = 1; n <= made.at(name); ++n) {
            CAPTURE(name);
            CAPTURE(n);
            auto w = world_with(completion::adaptive);
            context_driver d(*w);
            w->driver.fail_from(name, CUDA_ERROR_OUT_OF_MEMORY, n);
            blocking_op e(d);
            e.run();
            // How often the pools grow depends on timing.
            CHECK((e.failures >= 1 || w->driver.calls(name) < n));
            for (const auto& ec : e.errors)
                CHECK(ec == errc::out_of_memory);
            w->driver.forgive();
            blocking_op again(d);
            again.run();
            CHECK(again.failures == 0);
            CHECK(d.losses == 0);
        }
    }
}

TEST_CASE("the memory limit holds, and memory below it can be allocated again")
{
    cuda_world w;
    w.options.memory_limit = std::uint64_t(1) << 20;
    context_driver d(w);
    const auto x = d.floats(200'000);
    allocate_request more(100'000);
    CHECK(d.outcome_of(more) == errc::out_of_memory);
    d.context->release(x.raw());
    const auto y = d.floats(200'000);
    d.context->release(y.raw());
}

namespace {

jit::kernel registered(const char* symbol)
{
    auto made = std::make_shared<jit::image>();
    made->name = made->symbol = symbol;
    made->code = "code";
    return jit::kernel(jit::register_image(std::move(made)));
}

} // namespace

TEST_CASE("a launch that the driver refuses fails only its op")
{
    cuda_world w;
    w.driver.add_kernel("twice",
                        [&](const fake_cuda::launch&, void** arguments) {
                            auto* p = *static_cast<float**>(arguments[0]);
                            if (w.driver.touch(p, sizeof(float)))
                                *p *= 2;
                        },
                        {sizeof(float*)});
    const auto twice = registered("twice");
    context_driver d(w);
    const auto x = d.floats(1);
    d.write(x, {3.0f});
    auto launch = [&] {
        exec<decltype(jit::launch(twice, {}, inout<float>(x)))> r(jit::launch(twice, {}, inout<float>(x)),
                                                                  exec_options{});
        return d.outcome_of(r);
    };
    CHECK_FALSE(launch());
    w.driver.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(launch() == cuda::make_error(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
    CHECK_FALSE(launch());
    CHECK(d.read(x) == std::vector<float>{12.0f});
    w.driver.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED);
    CHECK(launch() == errc::context_lost);
    CHECK(d.losses == 1);
}

TEST_CASE("a kernel that cannot be loaded fails its op, and is loaded again for the next one")
{
    const char* functions[] = {"cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncGetParamInfo"};
    for (const auto* name : functions) {
        CAPTURE(name);
        cuda_world w;
        w.driver.add_kernel("nothing", [](const fake_cuda::launch&, void**) {}, {});
        const auto nothing = registered("nothing");
        context_driver d(w);
        auto launch = [&] {
            exec<jit::launch_op<>> r(jit::launch(nothing, {}), exec_options{});
            return d.outcome_of(r);
        };
        w.driver.fail(name, CUDA_ERROR_NO_BINARY_FOR_GPU);
        CHECK(launch() == cuda::make_error(CUDA_ERROR_NO_BINARY_FOR_GPU));
        CHECK_FALSE(launch());
    }
}

TEST_CASE("CUDA_ERROR_INVALID_DEVICE from an op fails only that op")
{
    cuda_world w;
    context_driver d(w);
    const auto x = d.floats(4);
    w.driver.fail("cuMemsetD32Async", CUDA_ERROR_INVALID_DEVICE);
    exec<memory::fill<float>> refused(memory::fill<float>{x, 1.0f}, exec_options{});
    CHECK(d.outcome_of(refused) == cuda::make_error(CUDA_ERROR_INVALID_DEVICE));
    exec<memory::fill<float>> next(memory::fill<float>{x, 1.0f}, exec_options{});
    CHECK_FALSE(d.outcome_of(next));
    CHECK(d.losses == 0);
}

TEST_CASE("a fatal error in one context ends the other contexts too")
{
    for (const auto how : strategies) {
        CAPTURE(how);
        auto w = world_with(how);
        context_driver one(*w), other(*w);
        const auto x = one.floats(4);
        const auto y = other.floats(4);
        exec<memory::fill<float>> fatal(memory::fill<float>{x, 1.0f}, exec_options{});
        w->poison();
        CHECK(one.outcome_of(fatal) == errc::context_lost);
        exec<memory::fill<float>> innocent(memory::fill<float>{y, 1.0f}, exec_options{});
        CHECK(other.outcome_of(innocent) == errc::context_lost);
        other.run_until([&] { return other.losses == 1; });
    }
}

TEST_SUITE_END();

} // namespace test_cuda_backend_faults
