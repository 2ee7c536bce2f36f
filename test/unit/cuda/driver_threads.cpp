#include "cuda/driver/driver_threads.hpp"

#include "memory_support.hpp"
#include "support/gate.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace test_cuda_driver_threads {

namespace {

using coaccel::cuda::driver_threads;

/// A driver with only the functions that the thread pool needs.
struct tiny_driver {
    tiny_driver()
    {
        last = nullptr;
        calls = 0;
        api.cuCtxSetCurrent = [](CUcontext c) {
            last = c;
            ++calls;
            return answer;
        };
        api.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
            std::swap(*mode, capture_mode);
            return CUDA_SUCCESS;
        };
    }

    static inline std::atomic<CUcontext> last;
    static inline std::atomic<int> calls;
    static inline CUresult answer = CUDA_SUCCESS;
    static inline thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    coaccel::cuda::driver_api api;
    CUcontext context = reinterpret_cast<CUcontext>(0x10);
};

} // namespace

TEST_SUITE_BEGIN("driver_threads");

TEST_CASE("no thread starts before the first job, and the context is current in the job")
{
    tiny_driver driver;
    test::told done;
    driver_threads b(driver.api, driver.context, 3);
    CHECK(b.limit() == 3);
    CHECK(driver.calls == 0);
    REQUIRE(b.run([&] {
        CHECK(driver.last == driver.context);
        CHECK(driver.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED);
        done.add();
    }));
    done.wait_for(1);
    CHECK(driver.calls == 1);
}

TEST_CASE("jobs run concurrently up to the thread limit, and further jobs are queued")
{
    constexpr int threads = 3;
    tiny_driver driver;
    test::gate gate;
    test::told done;
    std::atomic<int> late{0};
    driver_threads b(driver.api, driver.context, threads);
    for (int i = 0; i < threads; ++i)
        REQUIRE(b.run([&] { gate.pass(); }));
    gate.wait_for(threads);
    for (int i = 0; i < 10; ++i)
        REQUIRE(b.run([&] {
            ++late;
            done.add();
        }));
    CHECK(late == 0);
    gate.open();
    done.wait_for(10);
    CHECK(driver.calls == threads);
}

TEST_CASE("one thread runs jobs in FIFO order, and destroys each before the next")
{
    tiny_driver driver;
    test::told done;
    std::vector<int> order;
    auto held = std::make_shared<int>(0);
    const std::weak_ptr<int> watch = held;
    driver_threads b(driver.api, driver.context, 1);
    REQUIRE(b.run([&order, held] { order.push_back(0); }));
    held.reset();
    for (int i = 1; i < 100; ++i)
        REQUIRE(b.run([&, i] {
            CHECK(watch.expired());
            order.push_back(i);
        }));
    REQUIRE(b.run([&] { done.add(); }));
    done.wait_for(1);
    REQUIRE(order.size() == 100);
    for (int i = 0; i < 100; ++i)
        CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a job may submit further jobs")
{
    tiny_driver driver;
    test::told done;
    driver_threads b(driver.api, driver.context, 1);
    int left = 1000;
    std::function<void()> again = [&] {
        if (--left == 0)
            done.add();
        else
            CHECK(b.run(again));
    };
    REQUIRE(b.run(again));
    done.wait_for(1);
}

TEST_CASE("stop waits for running jobs and drops queued jobs, and no job runs after it")
{
    tiny_driver driver;
    test::gate gate;
    std::atomic<int> ran{0};
    driver_threads b(driver.api, driver.context, 1);
    auto held = std::make_shared<int>(0);
    REQUIRE(b.run([&] {
        gate.pass();
        ++ran;
    }));
    gate.wait_for(1);
    REQUIRE(b.run([&ran, held] { ran += 100; }));
    std::thread opener([&] {
        // The first job ends only after `stop` has dropped the second.
        while (held.use_count() > 1)
            std::this_thread::yield();
        gate.open();
    });
    b.stop();
    opener.join();
    CHECK(ran == 1);
    CHECK_FALSE(b.run([&] { ++ran; }));
    b.stop();
    CHECK(ran == 1);
}

TEST_CASE("jobs run even if the context cannot be made current")
{
    tiny_driver driver;
    driver.answer = CUDA_ERROR_INVALID_CONTEXT;
    test::told done;
    {
        driver_threads b(driver.api, driver.context, 1);
        REQUIRE(b.run([&] { done.add(); }));
        done.wait_for(1);
    }
    driver.answer = CUDA_SUCCESS;
}

TEST_CASE("a thread that starts after the death of the context makes no call for it")
{
    tiny_driver driver;
    test::told done;
    driver_threads b(driver.api, driver.context, 1);
    b.context_died();
    REQUIRE(b.run([&] { done.add(); }));
    done.wait_for(1);
    CHECK(driver.calls == 0);
}

TEST_CASE("a thread limit below one is raised to one")
{
    tiny_driver driver;
    test::told done;
    driver_threads b(driver.api, driver.context, 0);
    CHECK(b.limit() == 1);
    REQUIRE(b.run([&] { done.add(); }));
    done.wait_for(1);
}

TEST_CASE("jobs submitted by many threads all run")
{
    constexpr int producers = 4;
    constexpr int each = 1000;
    tiny_driver driver;
    std::atomic<int> ran{0};
    test::told done;
    driver_threads b(driver.api, driver.context, 3);
    std::vector<std::thread> threads;
    for (int i = 0; i < producers; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < each; ++n)
                (void)b.run([&] {
                    if (++ran == producers * each)
                        done.add();
                });
        });
    for (auto& t : threads)
        t.join();
    done.wait_for(1);
    CHECK(ran == producers * each);
    CHECK(driver.calls <= 3);
}

TEST_CASE("a job is refused if no thread can be started")
{
    // The child process has no address space left. The sanitizers need more than that.
    if (test::sanitized)
        return;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        tiny_driver driver;
        driver_threads b(driver.api, driver.context, 2);
        // Larger than any stack that the C library may have cached from a finished thread.
        pthread_attr_t large;
        ::pthread_attr_init(&large);
        ::pthread_attr_setstacksize(&large, std::size_t(256) << 20);
        ::pthread_setattr_default_np(&large);
        const rlimit none{1, 1};
        ::setrlimit(RLIMIT_AS, &none);
        ::_exit(b.run([] {}) ? 1 : 0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_SUITE_END();

} // namespace test_cuda_driver_threads
