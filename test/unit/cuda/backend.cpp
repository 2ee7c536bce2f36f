#include "cuda/backend.hpp"

#include "chosen_library.hpp"
#include "memory_support.hpp"
#include "support/start_op.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace test_cuda_backend {

namespace {

using namespace coaccel;
using cuda_backend = coaccel::cuda::backend;
using test::fake_cuda;
using test::told;

fake_cuda::settings stepped()
{
    fake_cuda::settings s;
    s.how = fake_cuda::mode::stepped;
    return s;
}

cuda_backend::options on(const fake_cuda& driver)
{
    cuda_backend::options o;
    o.libraries = cuda::library_tables(&driver.api());
    return o;
}

std::unique_ptr<cuda_backend> make(const fake_cuda& driver)
{
    auto made = cuda_backend::create(on(driver));
    REQUIRE(made);
    return std::move(made).value();
}

/// Repeats until the memory is available.
void* allocate(cuda_backend& b, cuda_backend::stream& s, std::size_t bytes, memory_kind kind, told& grown)
{
    for (;;) {
        const int before = grown.count();
        auto memory = b.allocate(s, bytes, kind);
        REQUIRE(memory);
        if (memory.value())
            return memory.value();
        grown.wait_for(before + 1);
    }
}

} // namespace

TEST_SUITE_BEGIN("cuda backend");

TEST_CASE("the backend reports its GPU")
{
    fake_cuda driver({.devices = 2, .name = "Imaginary 9000"});
    auto o = on(driver);
    o.ordinal = 1;
    auto made = cuda_backend::create(o);
    REQUIRE(made);
    const auto hardware = made.value()->hardware();
    CHECK(hardware.name == "Imaginary 9000");
    CHECK(hardware.ordinal == 1);
    CHECK(hardware.compute_capability == 90);
    CHECK(hardware.multiprocessors == 132);
    CHECK(hardware.driver_version == driver.api().version);
    CHECK(cuda_backend::creation_blocks(o));
}

TEST_CASE("without a driver the error names the missing library")
{
    const chosen_library nowhere(cuda::vendor_library::driver, "/nowhere/libcuda.so.1");
    auto made = cuda_backend::create({});
    // An earlier test may have loaded this machine's driver.
    if (made)
        return;
    CHECK(made.error() == errc::library_missing);
    CHECK(made.error().message().find("/nowhere/libcuda.so.1") != std::string::npos);
}

TEST_CASE("a refused creation gives a reason and leaks nothing")
{
    {
        fake_cuda driver({.devices = 0});
        auto made = cuda_backend::create(on(driver));
        CHECK(made.error() == errc::no_device);
        CHECK(made.error().message().find("GPU 0") != std::string::npos);
    }
    fake_cuda driver({.attributes = {{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0}}});
    auto o = on(driver);
    auto made = cuda_backend::create(o);
    CHECK(made.error() == errc::backend_unavailable);
    CHECK(made.error().message().find("Fake GPU") != std::string::npos);
    o.ordinal = 7;
    made = cuda_backend::create(o);
    CHECK(made.error() == errc::no_device);
    CHECK(made.error().message().find("GPU 7") != std::string::npos);
    o.helper_threads = -1;
    CHECK(cuda_backend::create(o).error() == errc::invalid_option);
}

TEST_CASE("the backend's context is current only while entered, and the previous one is restored")
{
    fake_cuda driver({.devices = 2});
    CUcontext mine = nullptr;
    REQUIRE(driver.api().cuDevicePrimaryCtxRetain(&mine, 1) == CUDA_SUCCESS);
    REQUIRE(driver.api().cuCtxPushCurrent(mine) == CUDA_SUCCESS);
    {
        auto b = make(driver);
        CHECK(driver.current_depth() == 1);
        {
            const auto outer = b->enter();
            const auto inner = b->enter();
            CHECK(driver.current_depth() == 3);
        }
        CHECK(driver.current_depth() == 1);
        std::thread([&] {
            const auto here = b->enter();
            CHECK(driver.current_depth() == 1);
        }).join();
    }
    CHECK(driver.current_depth() == 1);
    CHECK(driver.current_context() == mine);
    CUcontext popped = nullptr;
    CHECK(driver.api().cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
    CHECK(driver.api().cuDevicePrimaryCtxRelease(1) == CUDA_SUCCESS);
}

TEST_CASE("streams are non-blocking and have the requested priority")
{
    fake_cuda driver;
    auto b = make(driver);
    const auto here = b->enter();
    const std::size_t before = driver.streams().size();
    for (const auto p : {priority::low, priority::normal, priority::high})
        REQUIRE(b->make_stream(p));
    const auto all = driver.streams();
    REQUIRE(all.size() == before + 3);
    for (const auto& s : all)
        CHECK(s.flags == CU_STREAM_NON_BLOCKING);
    CHECK(all[before].priority == 0);
    CHECK(all[before + 1].priority < 0);
    CHECK(all[before + 1].priority > -5);
    CHECK(all[before + 2].priority == -5);
}

TEST_CASE("an event marks the work before it, for its own stream and for others")
{
    fake_cuda driver(stepped());
    auto b = make(driver);
    const auto here = b->enter();
    const std::size_t before = driver.streams().size();
    auto first = b->make_stream(priority::normal).value();
    auto second = b->make_stream(priority::normal).value();
    const CUstream one = driver.streams()[before].handle, other = driver.streams()[before + 1].handle;
    std::vector<int> order;
    driver.enqueue(one, [&] { order.push_back(1); });
    cuda_backend::event e;
    CHECK_FALSE(b->record(e, first));
    CHECK_FALSE(b->wait(second, e));
    driver.enqueue(other, [&] { order.push_back(2); });
    cuda_backend::event end;
    CHECK_FALSE(b->record(end, second));
    CHECK(b->query(e).value() == progress::pending);
    CHECK_FALSE(driver.step(other));
    CHECK(driver.step(one));
    CHECK(b->query(e).value() == progress::pending);
    CHECK(driver.step(one));
    CHECK(b->query(e).value() == progress::passed);
    CHECK(b->query(end).value() == progress::pending);
    std::thread waiter([&] { CHECK_FALSE(b->synchronize(end)); });
    waiter.join();
    CHECK(b->query(end).value() == progress::passed);
    CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("events are reused")
{
    fake_cuda driver;
    auto b = make(driver);
    const auto here = b->enter();
    auto s = b->make_stream(priority::normal).value();
    const std::size_t before = driver.events();
    for (int i = 0; i < 10; ++i) {
        cuda_backend::event a, c;
        CHECK_FALSE(b->record(a, s));
        CHECK_FALSE(b->record(c, s));
        CHECK_FALSE(b->record(c, s));
        CHECK_FALSE(b->synchronize(c));
    }
    CHECK(driver.events() == before + 2);
}

TEST_CASE("a notification arrives once, after its event has passed")
{
    fake_cuda driver(stepped());
    auto b = make(driver);
    const auto here = b->enter();
    const std::size_t before = driver.streams().size();
    auto s = b->make_stream(priority::normal).value();
    const CUstream lane = driver.streams()[before].handle;
    driver.enqueue(lane, [] {});
    cuda_backend::event e;
    told one, two;
    CHECK_FALSE(b->record(e, s));
    CHECK_FALSE(b->notify(e, one.call()));
    CHECK(driver.pending(lane) == 2);
    CHECK(driver.run_all() == 4);
    CHECK(one.count() == 1);
    CHECK_FALSE(b->record(e, s));
    CHECK_FALSE(b->notify(e, two.call()));
    driver.run_all();
    CHECK(one.count() == 1);
    CHECK(two.count() == 1);
}

TEST_CASE("no notification arrives after the listener is removed")
{
    fake_cuda driver(stepped());
    auto b = make(driver);
    const auto here = b->enter();
    const std::size_t before = driver.streams().size();
    auto s = b->make_stream(priority::normal).value();
    driver.enqueue(driver.streams()[before].handle, [] {});
    cuda_backend::event e;
    told one;
    CHECK_FALSE(b->record(e, s));
    CHECK_FALSE(b->notify(e, one.call()));
    b->listen({});
    driver.run_all();
    CHECK(one.count() == 0);
}

TEST_CASE("device and managed memory are allocated, counted and released")
{
    fake_cuda driver;
    auto b = make(driver);
    told grown;
    b->listen(grown.call());
    const auto here = b->enter();
    auto s = b->make_stream(priority::normal).value();
    // The first allocation needs memory from the driver, and the caller does not wait for that.
    CHECK(b->allocate(s, 1000, memory_kind::device).value() == nullptr);
    void* p = allocate(*b, s, 1000, memory_kind::device, grown);
    void* q = allocate(*b, s, 3000, memory_kind::managed, grown);
    auto info = b->memory();
    CHECK(info.used >= 4000);
    CHECK(info.reserved >= info.used);
    CHECK(info.high_water >= info.used);
    CHECK(info.total == std::uint64_t(1) << 30);
    CHECK(info.free < info.total);
    CHECK(driver.touch(q, 3000));
    b->release(s, p, 1000, memory_kind::device);
    b->release(s, q, 3000, memory_kind::managed);
    CHECK(b->memory().used == 0);
    CHECK(b->memory().high_water >= 4000);
    b->listen({});
}

TEST_CASE("a device that cannot export memory has none that could be exported")
{
    fake_cuda driver({.attributes = {{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0}}});
    auto b = make(driver);
    const auto here = b->enter();
    auto s = b->make_stream(priority::normal).value();
    CHECK_FALSE(b->can_export());
    CHECK(b->allocate(s, 1000, memory_kind::exportable).error() == errc::unsupported_op);
    CHECK(b->import_memory(detail::unique_fd(), 1000, memory_access::read_only).error() == errc::unsupported_op);
    CHECK(b->export_memory(&driver, 1000, memory_access::read_only).error() == errc::invalid_argument);
    CHECK(b->memory().used == 0);
}

TEST_CASE("pinned memory outlives its backend")
{
    fake_cuda driver;
    auto b = make(driver);
    told grown;
    b->listen(grown.call());
    auto pinned = b->pinned();
    void* memory = nullptr;
    for (int tries = 0; !memory; ++tries) {
        auto got = pinned->try_allocate(1000);
        REQUIRE(got);
        memory = got.value();
        if (!memory)
            grown.wait_for(tries + 1);
    }
    CHECK(driver.registered() >= 1000);
    {
        const auto here = b->enter();
        CHECK(b->memory().pinned_used >= 1000);
    }
    std::fill_n(static_cast<char*>(memory), 1000, 'x');
    b->listen({});
    b.reset();
    CHECK(driver.registered() == 0);
    CHECK(static_cast<char*>(memory)[999] == 'x');
    pinned->release(memory);
    CHECK(pinned->try_allocate(8).error() == fault::context_lost);
}

TEST_CASE("an unknown op is refused")
{
    fake_cuda driver;
    auto b = make(driver);
    const auto here = b->enter();
    auto s = b->make_stream(priority::normal).value();
    op_info info;
    info.id = 1;
    bound_op op{.info = &info};
    CHECK(b->find_code(op) == errc::unsupported_op);
    CHECK(test::start(*b, s, op) == errc::unsupported_op);
    CHECK_FALSE(b->finish(op));
}

TEST_CASE("the destruction of a backend waits for pending work")
{
    fake_cuda driver;
    auto b = make(driver);
    std::vector<int> order;
    {
        const auto here = b->enter();
        const std::size_t before = driver.streams().size();
        (void)b->make_stream(priority::normal);
        const CUstream lane = driver.streams()[before].handle;
        for (int i = 0; i < 5; ++i)
            driver.enqueue(lane, [&order, i] { order.push_back(i); });
    }
    b.reset();
    CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_SUITE_END();

} // namespace test_cuda_backend
