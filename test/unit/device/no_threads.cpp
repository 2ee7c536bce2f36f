#include "support/devices.hpp"
#include "support/sanitized.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <fstream>
#include <optional>
#include <pthread.h>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace test_device_no_threads {

// Behaviour when no thread can be started.

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;

TEST_SUITE_BEGIN("device without threads");

constexpr std::size_t mebibyte = std::size_t(1) << 20;

/// While it exists no thread can be started, because the stack of a new thread does not fit into the address space. The
/// stack size is larger than any used before, because glibc caches and reuses old stacks.
class no_threads {
public:
    no_threads()
    {
        REQUIRE(::pthread_getattr_default_np(&before_) == 0);
        pthread_attr_t large;
        ::pthread_attr_init(&large);
        ::pthread_attr_setstacksize(&large, 1024 * mebibyte);
        REQUIRE(::pthread_setattr_default_np(&large) == 0);
        ::pthread_attr_destroy(&large);
        REQUIRE(::getrlimit(RLIMIT_AS, &limit_) == 0);
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit tight = limit_;
        tight.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + 512 * mebibyte;
        REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
        REQUIRE_THROWS_AS(std::thread([] {}).join(), std::system_error);
    }

    no_threads(const no_threads&) = delete;
    no_threads& operator=(const no_threads&) = delete;

    ~no_threads()
    {
        ::setrlimit(RLIMIT_AS, &limit_);
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
    rlimit limit_{};
};

int failures = 0;
error_code last_failure;

directive count_failure(const error_code& ec) noexcept
{
    ++failures;
    last_failure = ec;
    return directive::restart;
}

// Sanitizers need additional address space.
#define SKIP_WHEN_SANITIZED()                                                                                          \
    do {                                                                                                               \
        if (test::sanitized)                                                                                           \
            return;                                                                                                    \
    } while (false)

TEST_CASE("a device that gets no thread retries under its restart policy, and starts once it gets one")
{
    SKIP_WHEN_SANITIZED();
    auto o = test::pool_options();
    o.restart.decider = &count_failure;
    o.restart.max_restarts = 1'000'000;
    o.restart.max_backoff = 10ms;
    failures = 0;
    asio::io_context io;
    std::optional<error_code> answer;
    device gpu;
    std::optional<no_threads> none(std::in_place);
    device::async_create(io.get_executor(), o, [&](error_code ec, device d) {
        answer = ec;
        gpu = d;
    });
    test::run_until(io, [] { return failures >= 3; });
    CHECK(last_failure == errc::start_failed);
    CHECK_FALSE(answer);
    none.reset();
    test::run_until(io, [&] { return answer.has_value(); });
    REQUIRE(*answer == error_code());
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
}

TEST_CASE("a device that gets no thread fails with a typed error when its restart policy gives up")
{
    SKIP_WHEN_SANITIZED();
    auto o = test::pool_options();
    o.restart.max_restarts = 2;
    asio::io_context io;
    std::optional<error_code> answer;
    {
        const no_threads none;
        device::async_create(io.get_executor(), o, [&](error_code ec, device) { answer = ec; });
        test::run_until(io, [&] { return answer.has_value(); });
    }
    CHECK(*answer == errc::start_failed);
    test::run_out(io);
    // The next creation is not affected.
    CHECK(await(io, device::async_create(io.get_executor(), o)));
}

TEST_CASE("a completion::sync device works when it can start no thread")
{
    SKIP_WHEN_SANITIZED();
    auto o = test::pool_options();
    o.context.completion = completion::sync;
    asio::io_context io;
    auto gpu = test::make_device(io, o);
    const no_threads none;
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    for (int i = 0; i < 3; ++i)
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    CHECK(gpu.status().generation == 1);
}

TEST_CASE("compiling without a thread is an error of that call only")
{
    SKIP_WHEN_SANITIZED();
    asio::io_context io;
    auto gpu = test::make_device(io);
    const auto compile = [&] { return await(io, gpu.async_compile("", jit::compile_options{})).error(); };
    {
        const no_threads none;
        CHECK(compile() == errc::start_failed);
        CHECK(compile() == errc::start_failed);
    }
    CHECK(compile() != errc::start_failed);
    CHECK(await(io, gpu.async_alloc<float>(4)));
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_no_threads
