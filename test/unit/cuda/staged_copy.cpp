#include "cuda/memory/staged_copy.hpp"

#include "cuda/driver/error.hpp"
#include "memory_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace test_cuda_staged_copy {

namespace {

using namespace coaccel;
using cuda::host_copy;
using cuda::staged_copies;
using direction = host_copy::direction;
using bytes = std::vector<unsigned char>;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

bytes random_bytes(std::size_t n)
{
    static std::mt19937_64 random(std::random_device{}());
    bytes data(n);
    // One word at a time: byte by byte this would take too long with a sanitizer.
    for (std::size_t at = 0; at < n; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        std::memcpy(data.data() + at, &word, std::min(sizeof(word), n - at));
    }
    return data;
}

struct copy_fixture : test::fake_context {
    explicit copy_fixture(int threads = 3, std::uint64_t pinned_limit = 64 * mib)
        : fake_context({}, threads), pool(std::in_place, api, helpers, pinned_limit),
          copies(std::in_place, cuda::copy_setting{api, helpers, *pool, busy, [this](CUresult r) { return check(r); },
                                                   [this] { told.add(); }, [this] { return given_up.load(); }})
    {
        pool->listen(told.call());
    }

    ~copy_fixture()
    {
        fake.hold_all(false);
        helpers.stop();
        if (!given_up) {
            for (CUdeviceptr p : memory)
                (void)api.cuMemFree(p);
            copies->destroy();
            copies.reset();
            CHECK(pool->used() == 0);
            return;
        }
        copies.reset();
        pool->detach(coaccel::cuda::pinned_pool::context_end::faulted);
    }

    error_code check(CUresult r)
    {
        if (cuda::is_sticky(r))
            given_up = true;
        return cuda::make_error(r);
    }

    CUdeviceptr device(std::size_t n)
    {
        CUdeviceptr made = 0;
        REQUIRE(api.cuMemAllocManaged(&made, n, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        memory.push_back(made);
        return made;
    }

    CUdeviceptr device(const bytes& data)
    {
        const CUdeviceptr made = device(data.size());
        std::memcpy(reinterpret_cast<void*>(made), data.data(), data.size());
        return made;
    }

    bytes content(CUdeviceptr p, std::size_t n)
    {
        REQUIRE(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
        const auto* first = reinterpret_cast<const unsigned char*>(p);
        return {first, first + n};
    }

    /// As the engine does: repeats the call after each notification, and finishes the op once the stream has completed
    /// it.
    error_code run(const host_copy& what)
    {
        bound_op op;
        const error_code ec = start(op, what);
        finish(op);
        return ec;
    }

    error_code start(bound_op& op, const host_copy& what)
    {
        for (;;) {
            const int rung = told.count();
            auto where = copies->enqueue(stream, op, what);
            if (!where)
                return where.error();
            if (where.value() == progress::passed)
                return {};
            told.wait_for(rung + 1);
        }
    }

    void finish(bound_op& op)
    {
        REQUIRE(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
        copies->finish(op);
        CHECK(op.state == nullptr);
    }

    error_code write(CUdeviceptr to, bytes& from)
    {
        return run({.way = direction::to_device, .device = to, .host = from.data(), .bytes = from.size()});
    }

    error_code read(bytes& to, CUdeviceptr from)
    {
        return run({.way = direction::to_host, .device = from, .host = to.data(), .bytes = to.size()});
    }

    std::atomic<int> busy{0};
    std::atomic<bool> given_up{false};
    std::vector<CUdeviceptr> memory;
    std::optional<cuda::pinned_pool> pool;
    std::optional<staged_copies> copies;
};

/// Collects a download.
struct basket {
    bytes data;
    int appended = 0;
    int made_room = 0;
    bool full = false;

    detail::collector sink()
    {
        return {this,
                [](void* self, const void* data, std::size_t n) noexcept {
                    auto* b = static_cast<basket*>(self);
                    const auto* first = static_cast<const unsigned char*>(data);
                    b->data.insert(b->data.end(), first, first + n);
                    ++b->appended;
                },
                [](void* self, std::size_t n) noexcept -> void* {
                    auto* b = static_cast<basket*>(self);
                    ++b->made_room;
                    if (b->full)
                        return nullptr;
                    b->data.resize(n);
                    return b->data.data();
                }};
    }
};

constexpr std::size_t sizes[] = {1,       3,           4096,        64 * kib, 64 * kib + 1, 300 * kib,
                                 1 * mib, 1 * mib + 1, 5 * mib - 7, 8 * mib,  17 * mib + 13};

} // namespace

TEST_SUITE_BEGIN("staged_copies");

TEST_CASE("every byte arrives, for any size, number of threads and amount of pinned memory")
{
    struct row {
        int threads;
        std::uint64_t limit;
    };
    for (const auto& r : {row{3, 64 * mib}, row{1, 64 * mib}, row{4, 1 * mib}, row{2, 8 * kib}}) {
        CAPTURE(r.threads);
        CAPTURE(r.limit);
        copy_fixture f(r.threads, r.limit);
        for (const std::size_t n : sizes) {
            if (r.limit < mib && n > mib)
                continue;
            CAPTURE(n);
            auto data = random_bytes(n);
            const CUdeviceptr p = f.device(n);
            CHECK(f.write(p, data) == error_code());
            CHECK(f.content(p, n) == data);
            bytes back(n);
            CHECK(f.read(back, p) == error_code());
            CHECK(back == data);
            CHECK(f.busy == 0);
            CHECK(f.pool->used() == 0);
        }
    }
}

TEST_CASE("a small download is appended, and a large one reserves room first")
{
    copy_fixture f;
    for (const std::size_t n : sizes) {
        CAPTURE(n);
        const auto data = random_bytes(n);
        basket b;
        CHECK(f.run({.way = direction::to_host, .device = f.device(data), .bytes = n, .sink = b.sink()}) ==
              error_code());
        CHECK(b.data == data);
        CHECK(b.appended == (n <= staged_copies::small_copy));
        CHECK(b.made_room == (n > staged_copies::small_copy));
    }
    basket b;
    b.full = true;
    CHECK(f.run({.way = direction::to_host, .device = f.device(mib), .bytes = mib, .sink = b.sink()}) ==
          errc::out_of_memory);
    CHECK(f.busy == 0);
}

TEST_CASE_FIXTURE(copy_fixture, "memory that is entirely page-locked is copied directly")
{
    constexpr std::size_t n = 2 * mib;
    auto data = random_bytes(n);
    REQUIRE(api.cuMemHostRegister(data.data(), n, 0) == CUDA_SUCCESS);
    const CUdeviceptr p = device(n);
    bound_op op;
    const host_copy up{.way = direction::to_device, .device = p, .host = data.data(), .bytes = n};
    CHECK(copies->enqueue(stream, op, up).value() == progress::passed);
    CHECK(op.state == nullptr);
    CHECK(content(p, n) == data);
    CHECK(fake.calls("cuMemcpyHtoDAsync") == 1);
    const host_copy down{.way = direction::to_host, .device = p, .host = data.data(), .bytes = n};
    std::ranges::fill(data, static_cast<unsigned char>(0));
    CHECK(copies->enqueue(stream, op, down).value() == progress::passed);
    CHECK(content(p, n) == data);
    fake.fail("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE);
    CHECK(copies->enqueue(stream, op, down).error() == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
    CHECK(op.state == nullptr);
    CHECK(pool->reserved() == 0);
    REQUIRE(api.cuMemHostUnregister(data.data()) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(copy_fixture, "memory that is partly page-locked, or unknown to the driver, is staged")
{
    constexpr std::size_t n = 2 * mib;
    auto data = random_bytes(n);
    const CUdeviceptr p = device(n);
    REQUIRE(api.cuMemHostRegister(data.data(), n - 1, 0) == CUDA_SUCCESS);
    CHECK(write(p, data) == error_code());
    CHECK(content(p, n) == data);
    CHECK(pool->reserved() > 0);
    REQUIRE(api.cuMemHostUnregister(data.data()) == CUDA_SUCCESS);
    fake.fail("cuPointerGetAttributes", CUDA_ERROR_INVALID_VALUE);
    bytes back(n);
    CHECK(read(back, p) == error_code());
    CHECK(back == data);
}

TEST_CASE_FIXTURE(copy_fixture, "managed memory is copied directly")
{
    const auto data = random_bytes(mib);
    const CUdeviceptr from = device(data);
    const CUdeviceptr to = device(mib);
    CHECK(run({.device = to, .host = reinterpret_cast<void*>(from), .bytes = mib}) == error_code());
    CHECK(content(to, mib) == data);
    CHECK(pool->reserved() == 0);
}

TEST_CASE("a copy that waits for the stream leaves its thread free for other jobs")
{
    for (const auto way : {direction::to_device, direction::to_host}) {
        CAPTURE(int(way));
        copy_fixture f(1);
        const auto data = random_bytes(12 * mib);
        bytes host = way == direction::to_device ? data : bytes(data.size());
        const CUdeviceptr p = way == direction::to_device ? f.device(data.size()) : f.device(data);
        f.fake.hold(f.stream);
        const host_copy what{.way = way, .device = p, .host = host.data(), .bytes = host.size()};
        bound_op op;
        auto begun = [&]() -> result<bool> {
            CHECK(f.copies->enqueue(f.stream, op, what).value() == progress::pending);
            return f.pool->used() > 0;
        };
        REQUIRE(f.until_answered(begun));
        for (int i = 0; i < 20; ++i) {
            test::told other;
            REQUIRE(f.helpers.run([&] { other.add(); }));
            other.wait_for(1);
        }
        CHECK(f.copies->enqueue(f.stream, op, what).value() == progress::pending);
        f.fake.let_go(f.stream);
        CHECK(f.start(op, what) == error_code());
        CHECK(f.busy == 0);
        f.finish(op);
        CHECK(f.content(p, data.size()) == data);
        CHECK(host == data);
    }
}

TEST_CASE_FIXTURE(copy_fixture, "a submitted copy keeps its pinned memory until it is finished")
{
    auto data = random_bytes(1000);
    const CUdeviceptr p = device(data.size());
    fake.hold(stream);
    bound_op op;
    CHECK(start(op, {.device = p, .host = data.data(), .bytes = data.size()}) == error_code());
    CHECK(pool->used() == 1024);
    const auto sent = data;
    std::ranges::fill(data, static_cast<unsigned char>(0));
    fake.let_go(stream);
    finish(op);
    CHECK(content(p, data.size()) == sent);
    CHECK(pool->used() == 0);
}

TEST_CASE("a driver error at any call fails the op and leaks nothing")
{
    struct row {
        const char* function;
        direction way;
        std::size_t size;
    };
    const row rows[] = {
        {"cuMemHostRegister", direction::to_device, 100},     {"cuMemHostRegister", direction::to_host, 9 * mib},
        {"cuMemcpyHtoDAsync", direction::to_device, 100},     {"cuMemcpyDtoHAsync", direction::to_host, 100},
        {"cuMemcpyHtoDAsync", direction::to_device, 9 * mib}, {"cuMemcpyDtoHAsync", direction::to_host, 9 * mib},
        {"cuEventCreate", direction::to_device, 9 * mib},     {"cuEventCreate", direction::to_host, 9 * mib},
        {"cuEventRecord", direction::to_device, 9 * mib},     {"cuEventRecord", direction::to_host, 9 * mib},
        {"cuEventQuery", direction::to_host, 9 * mib},
    };
    for (const auto& r : rows) {
        CAPTURE(std::string(r.function));
        CAPTURE(r.size);
        for (const int nth : {1, 2, 5}) {
            if (nth > 1 && (r.size < mib || std::string(r.function) == "cuMemHostRegister"))
                continue;
            CAPTURE(nth);
            copy_fixture f(2);
            auto host = random_bytes(r.size);
            const CUdeviceptr p = f.device(r.size);
            const host_copy what{.way = r.way, .device = p, .host = host.data(), .bytes = host.size()};
            f.fake.fail(r.function, CUDA_ERROR_NOT_PERMITTED, nth);
            const int before = f.fake.calls(r.function);
            const auto ec = f.run(what);
            if (f.fake.calls(r.function) - before >= nth)
                CHECK(ec == cuda::make_error(CUDA_ERROR_NOT_PERMITTED));
            CHECK(f.busy == 0);
            CHECK(f.pool->used() == 0);
        }
    }
}

TEST_CASE("an op that gets no pinned memory fails")
{
    copy_fixture f(2, 2048);
    auto data = random_bytes(mib);
    const CUdeviceptr p = f.device(mib);
    CHECK(f.write(p, data) == errc::out_of_memory);
    data.resize(10);
    CHECK(f.write(p, data) == errc::out_of_memory);
}

TEST_CASE_FIXTURE(copy_fixture, "an op that gets no thread fails")
{
    auto data = random_bytes(2 * mib);
    const CUdeviceptr p = device(2 * mib);
    CHECK(write(p, data) == error_code());
    helpers.stop();
    CHECK(write(p, data) == errc::out_of_memory);
    CHECK(busy == 0);
    CHECK(pool->used() == 0);
}

TEST_CASE("a copy stops using the caller's memory when its context is given up, and stays owned to the end")
{
    for (const auto way : {direction::to_device, direction::to_host}) {
        CAPTURE(int(way));
        for (const bool killed : {false, true}) {
            CAPTURE(killed);
            copy_fixture f(2);
            bytes host(12 * mib);
            const CUdeviceptr p = f.device(host.size());
            f.fake.hold(f.stream);
            const host_copy what{.way = way, .device = p, .host = host.data(), .bytes = host.size()};
            bound_op op;
            auto begun = [&]() -> result<bool> {
                CHECK(f.copies->enqueue(f.stream, op, what).value() == progress::pending);
                return f.pool->used() > 0;
            };
            REQUIRE(f.until_answered(begun));
            if (killed)
                f.fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
            else
                f.given_up = true;
            while (f.busy != 0 || !f.given_up)
                std::this_thread::yield();
            f.helpers.stop();
            CHECK(f.fake.calls_after_death() == 0);
            f.fake.let_go(f.stream);
            // The op is never finished.
            if (!killed) {
                REQUIRE(f.api.cuStreamSynchronize(f.stream) == CUDA_SUCCESS);
                f.given_up = false;
            }
        }
    }
}

TEST_CASE("a copy that has not begun never uses the caller's memory after its context is given up")
{
    copy_fixture f(1);
    std::promise<void> gate;
    REQUIRE(f.helpers.run([&] { gate.get_future().wait(); }));
    const bytes before = random_bytes(12 * mib);
    bytes host = before;
    const CUdeviceptr p = f.device(host.size());
    const host_copy what{.way = direction::to_host, .device = p, .host = host.data(), .bytes = host.size()};
    bound_op op;
    CHECK(f.copies->enqueue(f.stream, op, what).value() == progress::pending);
    CHECK(f.busy == 0);
    f.given_up = true;
    gate.set_value();
    CHECK(f.until_answered([&]() -> result<bool> {
        auto now = f.copies->enqueue(f.stream, op, what);
        CHECK((!now || now.value() == progress::pending));
        return !now;
    }));
    CHECK(f.busy == 0);
    CHECK(host == before);
    f.given_up = false;
}

TEST_CASE("many concurrent copies share the pinned memory")
{
    copy_fixture f(3, 4 * mib);
    struct one {
        bytes host;
        bytes expected;
        host_copy what;
        bound_op op;
        bool done = false;
    };
    std::vector<std::unique_ptr<one>> all;
    for (int i = 0; i < 24; ++i) {
        auto o = std::make_unique<one>();
        o->expected = random_bytes(1 + static_cast<std::size_t>(i) * 137 * kib);
        const bool up = i % 2 == 0;
        o->host = up ? o->expected : bytes(o->expected.size());
        o->what = {.way = up ? direction::to_device : direction::to_host,
                   .device = up ? f.device(o->expected.size()) : f.device(o->expected),
                   .host = o->host.data(),
                   .bytes = o->host.size()};
        all.push_back(std::move(o));
    }
    for (std::size_t left = all.size(); left > 0;) {
        const int rung = f.told.count();
        bool any = false;
        for (auto& o : all) {
            if (o->done)
                continue;
            if (f.copies->enqueue(f.stream, o->op, o->what).value() == progress::pending)
                continue;
            f.finish(o->op);
            o->done = any = true;
            --left;
        }
        if (!any)
            f.told.wait_for(rung + 1);
    }
    for (auto& o : all) {
        CHECK(o->host == o->expected);
        CHECK(f.content(o->what.device, o->expected.size()) == o->expected);
    }
    CHECK(f.busy == 0);
}

TEST_SUITE_END();

} // namespace test_cuda_staged_copy
