#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "support.hpp"
#include "support/fake_cuda.hpp"
#include "support/gate.hpp"
#include "support/start_op.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace test_jit_module_cache {

namespace {

using namespace coaccel;
using options = jit::compile_options;

/// One context on a fake driver, with its listener.
class world {
public:
    world()
    {
        driver.add_kernel("scale",
                          [](const test::fake_cuda::launch&, void** arguments) {
                              float* x = nullptr;
                              float by = 0;
                              std::memcpy(&x, arguments[0], sizeof(x));
                              std::memcpy(&by, arguments[1], sizeof(by));
                              *x *= by;
                          },
                          {8, 4});
        start();
    }

    void start(const cuda::driver_api* api = nullptr)
    {
        lane.reset();
        backend.reset();
        cuda::backend::options how;
        // A single thread runs the jobs in order.
        how.helper_threads = 1;
        how.libraries = cuda::library_tables(api ? api : &driver.api());
        auto made = cuda::backend::create(how);
        REQUIRE(made.has_value());
        backend = std::move(made).value();
        backend->listen({[](void* self) noexcept { static_cast<world*>(self)->told(); }, this});
        const auto here = backend->enter();
        auto stream = backend->make_stream(priority::normal);
        REQUIRE(stream.has_value());
        lane.emplace(stream.value());
    }

    /// Enqueues until the op is no longer pending, then finishes it.
    template <class Op>
    error_code run(const Op& op, std::initializer_list<void*> memory = {}, void* reply = nullptr)
    {
        std::vector<void*> addresses(memory);
        bound_op bound{.info = &info_of<Op>(), .op = &op, .reply = reply, .operands = addresses.data()};
        const auto ec = enqueue(bound);
        finish(bound);
        return ec;
    }

    error_code enqueue(bound_op& bound)
    {
        const auto here = backend->enter();
        for (;;) {
            const int before = calls();
            if (const auto started = test::try_start(*backend, *lane, bound))
                return *started;
            wait_for_more_than(before);
        }
    }

    void finish(bound_op& bound)
    {
        const auto here = backend->enter();
        cuda::backend::event end;
        if (!backend->record(end, *lane))
            CHECK_FALSE(backend->synchronize(end));
        (void)backend->finish(bound);
    }

    jit::kernel kernel(const char* symbol = "scale") { return test::make_kernel(options(symbol), symbol); }

    test::fake_cuda driver;
    std::unique_ptr<cuda::backend> backend;
    std::optional<cuda::backend::stream> lane;

private:
    void told() noexcept
    {
        const std::scoped_lock lock(mutex_);
        ++calls_;
        changed_.notify_all();
    }

    int calls()
    {
        const std::scoped_lock lock(mutex_);
        return calls_;
    }

    void wait_for_more_than(int n)
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return calls_ > n; });
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int calls_ = 0;
};

const ref<float> any{};

} // namespace

TEST_SUITE_BEGIN("cuda::module_cache");

TEST_CASE("a kernel is loaded once, off the executor, and launched with its arguments")
{
    world w;
    const auto k = w.kernel();
    float x = 3;
    CHECK_FALSE(w.run(jit::launch(k, {}, inout(any), 2.0f), {&x}));
    CHECK(x == 6);
    CHECK_FALSE(w.run(jit::launch(k, {}, inout(any), 0.5f), {&x}));
    CHECK(x == 3);
    CHECK(w.driver.calls("cuModuleLoadData") == 1);
    CHECK(w.driver.calls("cuLaunchKernel") == 2);
}

TEST_CASE("the first launch does not block while the kernel is loaded")
{
    static test::gate loading;
    static decltype(cuda::driver_api::cuModuleLoadData) load;
    cuda::driver_api api;
    world w;
    api = w.driver.api();
    load = std::exchange(api.cuModuleLoadData, [](CUmodule* made, const void* code) {
        loading.pass();
        return load(made, code);
    });
    w.start(&api);
    const auto k = w.kernel();
    float x = 3;
    const auto op = jit::launch(k, {}, inout(any), 2.0f);
    void* address = &x;
    bound_op bound{.info = &info_of<std::remove_const_t<decltype(op)>>(), .op = &op, .operands = &address};
    {
        const auto here = w.backend->enter();
        CHECK_FALSE(test::try_start(*w.backend, *w.lane, bound).has_value());
    }
    loading.open();
    CHECK_FALSE(w.enqueue(bound));
    w.finish(bound);
    CHECK(x == 6);
}

TEST_CASE("arguments that differ from the driver's parameter info in number or size are refused")
{
    world w;
    const auto k = w.kernel();
    float x = 3;
    const auto few = w.run(jit::launch(k, {}, inout(any)), {&x});
    CHECK(few == errc::argument_mismatch);
    CHECK(few.message().find("2 arguments, given 1") != std::string::npos);
    const auto wide = w.run(jit::launch(k, {}, inout(any), 2.0), {&x});
    CHECK(wide == errc::argument_mismatch);
    CHECK(wide.message().find("argument 2") != std::string::npos);
    CHECK(w.driver.calls("cuLaunchKernel") == 0);
}

TEST_CASE("a kernel with more parameters than the maximum number of arguments is refused")
{
    world w;
    const std::vector<std::size_t> sizes(jit::max_arguments + 1, sizeof(int));
    w.driver.add_kernel("many", [](const test::fake_cuda::launch&, void**) {}, sizes);
    const auto k = w.kernel("many");
    const auto ec = w.run(jit::launch(k, {}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    CHECK(ec == errc::argument_mismatch);
    CHECK(ec.message().find("takes 65 arguments, a launch has at most 64") != std::string::npos);
    CHECK(w.driver.calls("cuLaunchKernel") == 0);
}

TEST_CASE("shapes beyond the device limits are refused, and the message names the limit")
{
    world w;
    const auto k = w.kernel();
    float x = 3;
    const struct {
        jit::launch_shape shape;
        const char* word;
    } rows[] = {
        {{.grid = {1, 65536}}, "grid.y"},
        {{.grid = {1, 1, 65536}}, "grid.z"},
        {{.grid = {0x80000000u}}, "grid.x"},
        {{.block = {1025}}, "block.x"},
        {{.block = {1, 1025}}, "block.y"},
        {{.block = {1, 1, 65}}, "block.z"},
        {{.block = {1024, 2}}, "threads"},
        {{.block = {0xffffffffu, 0xffffffffu, 0xffffffffu}}, "block.x"},
        {{.shared_bytes = 1u << 20}, "shared memory"},
        {{.shared_bytes = 0xffffffffu}, "shared memory"},
    };
    for (const auto& r : rows) {
        CAPTURE(r.word);
        const auto ec = w.run(jit::launch(k, r.shape, inout(any), 1.0f), {&x});
        CHECK(ec == errc::invalid_launch);
        CHECK(ec.message().find(r.word) != std::string::npos);
    }
    CHECK(w.driver.calls("cuLaunchKernel") == 0);
}

TEST_CASE("shared memory beyond 48 KiB is requested once")
{
    world w;
    const auto k = w.kernel();
    float x = 3;
    const auto launch = [&](std::uint32_t bytes) {
        return w.run(jit::launch(k, {.shared_bytes = bytes}, inout(any), 1.0f), {&x});
    };
    CHECK_FALSE(launch(48 << 10));
    CHECK(w.driver.calls("cuFuncSetAttribute") == 0);
    CHECK_FALSE(launch(100 << 10));
    CHECK_FALSE(launch(64 << 10));
    CHECK_FALSE(launch(100 << 10));
    CHECK(w.driver.calls("cuFuncSetAttribute") == 1);
}

TEST_CASE("a driver error during loading is reported, and the next launch retries")
{
    for (const char* function : {"cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncGetParamInfo",
                                 "cuDeviceGetAttribute"}) {
        CAPTURE(function);
        world w;
        const auto k = w.kernel();
        float x = 3;
        const auto op = jit::launch(k, {}, inout(any), 2.0f);
        w.driver.fail(function, CUDA_ERROR_NO_BINARY_FOR_GPU);
        CHECK(w.run(op, {&x}) == cuda::make_error(CUDA_ERROR_NO_BINARY_FOR_GPU));
        CHECK(w.backend->modules().size() == 0);
        CHECK(x == 3);
        CHECK_FALSE(w.run(op, {&x}));
        CHECK(x == 6);
    }
}

TEST_CASE("a launch error of the driver is reported")
{
    world w;
    const auto k = w.kernel();
    float x = 3;
    w.driver.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    const auto op = jit::launch(k, {}, inout(any), 2.0f);
    CHECK(w.run(op, {&x}) == cuda::make_error(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
    CHECK_FALSE(w.run(op, {&x}));
}

TEST_CASE("a symbol missing from the module is reported as the driver's error")
{
    world w;
    const auto other = w.kernel("other");
    CHECK(w.run(jit::launch(other, {})) == cuda::make_error(CUDA_ERROR_NOT_FOUND));
}

TEST_CASE("a launch of a kernel released before it was loaded is an error")
{
    world w;
    auto k = w.kernel();
    const auto op = jit::launch(k, {}, inout(any), 1.0f);
    const auto question = jit::occupancy(k);
    k = {};
    CHECK(w.run(op) == errc::invalid_argument);
    CHECK(w.run(question) == errc::invalid_argument);
}

TEST_CASE("a kernel without device code is not supported")
{
    world w;
    const auto made = jit::make_host_kernel(options("f").host([](const jit::launch_shape&) {}), "why");
    REQUIRE(made.has_value());
    const auto ec = w.run(jit::launch(made.value(), {}));
    CHECK(ec == errc::unsupported_op);
    CHECK(ec.message().find("why") != std::string::npos);
}

TEST_CASE("a released kernel is unloaded at the next load, unless an op uses it")
{
    world w;
    float x = 3;
    auto first = w.kernel();
    auto used = w.kernel();
    CHECK_FALSE(w.run(jit::launch(first, {}, inout(any), 1.0f), {&x}));
    const auto op = jit::launch(used, {}, inout(any), 1.0f);
    void* address = &x;
    bound_op bound{.info = &info_of<std::remove_const_t<decltype(op)>>(), .op = &op, .operands = &address};
    REQUIRE_FALSE(w.enqueue(bound));
    first = {};
    used = {};
    CHECK(w.driver.calls("cuModuleUnload") == 0);
    const auto second = w.kernel();
    CHECK_FALSE(w.run(jit::launch(second, {}, inout(any), 1.0f), {&x}));
    const auto third = w.kernel();
    CHECK_FALSE(w.run(jit::launch(third, {}, inout(any), 1.0f), {&x}));
    CHECK(w.driver.calls("cuModuleUnload") == 1);
    CHECK(w.backend->modules().size() == 3);
    w.finish(bound);
    const auto fourth = w.kernel();
    CHECK_FALSE(w.run(jit::launch(fourth, {}, inout(any), 1.0f), {&x}));
    CHECK(w.driver.calls("cuModuleUnload") == 2);
    w.lane.reset();
    w.backend.reset();
    CHECK(w.driver.calls("cuModuleUnload") == 5);
    CHECK(w.driver.leaks().empty());
}

TEST_CASE("the occupancy comes from the driver")
{
    world w;
    const auto k = w.kernel();
    jit::occupancy_info reply;
    CHECK_FALSE(w.run(jit::occupancy(k), {}, &reply));
    CHECK(reply.block_size == 1024);
    CHECK(reply.min_grid_size > 0);
    CHECK(reply.blocks_per_multiprocessor > 0);
    CHECK_FALSE(w.run(jit::occupancy(k, 100 << 10), {}, &reply));
    CHECK(w.run(jit::occupancy(k, 1 << 30), {}, &reply) == errc::invalid_launch);
    for (const char* function : {"cuOccupancyMaxPotentialBlockSize", "cuOccupancyMaxActiveBlocksPerMultiprocessor"}) {
        w.driver.fail(function, CUDA_ERROR_INVALID_VALUE);
        CHECK(w.run(jit::occupancy(k), {}, &reply) == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
    }
}

TEST_CASE("after a context dies during a load the driver gets no more calls")
{
    world w;
    const auto k = w.kernel();
    const auto loaded = w.kernel();
    float x = 3;
    CHECK_FALSE(w.run(jit::launch(loaded, {}, inout(any), 1.0f), {&x}));
    w.driver.fail("cuModuleLoadData", CUDA_ERROR_ILLEGAL_ADDRESS);
    const auto op = jit::launch(k, {}, inout(any), 1.0f);
    bound_op bound{.info = &info_of<std::remove_const_t<decltype(op)>>(), .op = &op};
    CHECK(bool(w.enqueue(bound)));
    CHECK(w.backend->dead());
    w.lane.reset();
    w.backend.reset();
    CHECK(w.driver.calls("cuModuleUnload") == 0);
    CHECK(w.driver.calls_after_death() == 0);
}

TEST_SUITE_END();

} // namespace test_jit_module_cache
