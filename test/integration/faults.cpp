#include "isolated.hpp"
#include "posix/unique_fd.hpp"
#include "support/sanitized.hpp"
#include "support/undying.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace test_integration_faults {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;
using test::worker_log;

namespace {

struct outcomes {
    int good = 0;
    int lost = 0;
    int other = 0;

    auto count()
    {
        return [this](error_code ec, auto&&...) { ++(!ec ? good : ec == errc::context_lost ? lost : other); };
    }
    int all() const { return good + lost + other; }
};

bool is_running(int pid)
{
    // A process that has ended may not have been reaped yet.
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    return name_end != std::string::npos && line.size() > name_end + 2 && line[name_end + 2] != 'Z';
}

} // namespace

TEST_SUITE_BEGIN("isolated faults");

TEST_CASE("a standby has been warmed up before it takes over")
{
    auto o = isolated_options();
    o.standby = 1;
    isolated_fixture f(o);
    f.send(SIGKILL);
    f.wait_for_generation(2);
    CHECK_FALSE(f.run(memory::fill<float>{f.upload(numbers(100)), 1.0f}));
    CHECK_FALSE(test::worker_log::has("could not be warmed up"));
}

TEST_CASE("a killed worker fails each outstanding op once, and the next worker takes over")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options();
        o.standby = standby;
        o.host.faults.delay = 20ms;
        isolated_fixture f(o);
        const auto x = f.upload(numbers(100));
        const int first = f.process();
        outcomes got;
        for (int i = 0; i < 50; ++i)
            f.gpu.async_exec(memory::fill<float>{x, 1.0f}, got.count());
        f.io.restart();
        f.io.poll();
        REQUIRE(::kill(first, SIGKILL) == 0);
        test::run_until(f.io, [&] { return got.all() == 50; });
        CHECK(got.lost > 0);
        CHECK(got.other == 0);
        f.wait_for_generation(2);
        CHECK(f.gpu.status().reason == errc::worker_killed);
        CHECK(f.gpu.status().reason.message().find(std::to_string(first)) != std::string::npos);
        CHECK(f.process() != first);
        CHECK_FALSE(is_running(first));
        CHECK(f.run(memory::fill<float>{x, 1.0f}) == errc::stale_ref);
        const auto y = f.upload(numbers(100));
        CHECK(f.download(y.ref()) == numbers(100));
        CHECK(got.all() == 50);
    }
}

TEST_CASE("an idle worker that is killed is replaced too")
{
    isolated_fixture f;
    const int first = f.process();
    REQUIRE(::kill(first, SIGKILL) == 0);
    f.wait_for_generation(2);
    CHECK(f.process() != first);
    CHECK(worker_log::has("worker " + std::to_string(first) + " was ended by signal 9"));
}

TEST_CASE("a fault in the worker's context is reported with its reason")
{
    fault_injector injector;
    auto o = isolated_options();
    o.host.injector = &injector;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    injector.poison();
    outcomes got;
    for (int i = 0; i < 20; ++i)
        f.gpu.async_exec(memory::fill<float>{x, 1.0f}, got.count());
    test::run_until(f.io, [&] { return got.all() == 20; });
    CHECK(got.lost > 0);
    CHECK(got.other == 0);
    f.wait_for_generation(2);
    CHECK(is_context_lost(f.gpu.status().reason));
    CHECK(f.run(memory::fill<float>{x, 1.0f}) == errc::stale_ref);
    const auto y = f.upload(numbers(100));
    CHECK(f.download(y.ref()) == numbers(100));
}

TEST_CASE("the plan of an injector applies to every worker and replaces the faults of the options")
{
    fault_injector injector({.out_of_memory_at = 4096, .delay = 30ms});
    auto o = isolated_options();
    o.host.injector = &injector;
    o.host.faults.out_of_memory_at = 8;
    isolated_fixture f(o);
    for (const generation g : {1, 2}) {
        CAPTURE(g);
        f.wait_for_generation(g);
        const auto x = f.upload(numbers(100));
        CHECK(await(f.io, f.gpu.async_alloc<float>(4096)).error() == errc::out_of_memory);
        const auto began = std::chrono::steady_clock::now();
        CHECK_FALSE(f.run(memory::fill<float>{x, 1.0f}));
        CHECK(std::chrono::steady_clock::now() - began >= 30ms);
        if (g == 1)
            f.send(SIGKILL);
    }
}

TEST_CASE("a worker without heartbeats is killed and replaced")
{
    auto o = isolated_options();
    o.worker.heartbeat = 200ms;
    o.standby = 1;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    const int first = f.process();
    REQUIRE(::kill(first, SIGSTOP) == 0);
    outcomes got;
    f.gpu.async_exec(memory::fill<float>{x, 1.0f}, got.count());
    test::run_until(f.io, [&] { return got.all() == 1; });
    CHECK(got.lost == 1);
    f.wait_for_generation(2);
    CHECK(f.gpu.status().reason == errc::worker_hung);
    const auto y = f.upload(numbers(100));
    CHECK(f.download(y.ref()) == numbers(100));
}

TEST_CASE("a worker that cannot be killed is replaced too")
{
    auto o = isolated_options();
    o.worker.heartbeat = 200ms;
    o.standby = 1;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    test::undying first(f.process());
    if (!first)
        return;
    f.send(SIGSTOP);
    outcomes got;
    f.gpu.async_exec(memory::fill<float>{x, 1.0f}, got.count());
    test::run_until(f.io, [&] { return got.all() == 1; });
    CHECK(got.lost == 1);
    f.wait_for_generation(2);
    CHECK(f.gpu.status().reason == errc::worker_hung);
    const auto y = f.upload(numbers(100));
    CHECK(f.download(y.ref()) == numbers(100));
}

TEST_CASE("an op that hangs in the worker causes its replacement")
{
    fault_injector injector;
    auto o = isolated_options();
    o.host.injector = &injector;
    o.context.hang_timeout = 100ms;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    injector.hang();
    CHECK(is_context_lost(f.run(memory::fill<float>{x, 1.0f})));
    f.wait_for_generation(2);
    CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
}

TEST_CASE("a worker that refuses to start is retried")
{
    fault_injector injector;
    injector.refuse_starts(2);
    auto o = isolated_options();
    o.host.injector = &injector;
    isolated_fixture f(o);
    CHECK(f.gpu.status().generation == 1);
    CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
}

TEST_CASE("a device without remaining restarts has failed and refuses ops immediately")
{
    auto o = isolated_options();
    o.restart.max_restarts = 1;
    isolated_fixture f(o);
    for (const generation g : {1u, 2u}) {
        test::run_until(f.io, [&] { return f.gpu.status().generation == g; });
        f.send(SIGKILL);
        test::run_until(f.io,
                        [&] { return f.gpu.status().generation > g || f.gpu.status().state == device_state::failed; });
    }
    CHECK(f.gpu.status().state == device_state::failed);
    CHECK(f.gpu.status().reason == errc::worker_killed);
    CHECK(await(f.io, f.gpu.async_alloc<float>(10)).error() == errc::device_failed);
}

TEST_CASE("copies in flight when the worker dies are completed, and their memory is no longer accessed")
{
    auto o = isolated_options();
    isolated_fixture f(o);
    for (int round = 0; round < 10; ++round) {
        const std::vector<float> data(4'000'000, 1.0f);
        std::vector<float> back(4'000'000);
        auto x = await(f.io, f.gpu.async_alloc<float>(data.size()));
        if (!x)
            continue;
        outcomes got;
        const auto g = f.gpu.status().generation;
        f.gpu.async_write(x.value(), std::span<const float>(data), got.count());
        f.gpu.async_read(x.value(), std::span<float>(back), got.count());
        f.gpu.async_download(x.value(), got.count());
        for (int n = 0; n < round; ++n)
            f.io.run_one();
        f.send(SIGKILL);
        test::run_until(f.io, [&] { return got.all() == 3; });
        CHECK(got.other == 0);
        f.wait_for_generation(g + 1);
    }
    const auto y = f.upload(numbers(1'000'000));
    CHECK(f.download(y.ref()) == numbers(1'000'000));
}

TEST_CASE("an idempotent upload survives the loss of its worker")
{
    auto o = isolated_options();
    o.standby = 1;
    isolated_fixture f(o);
    for (const std::size_t size : {10u, 10u, 10'000u, 100'000u, 1'000'000u}) {
        const auto data = numbers(size);
        const int process = f.process();
        buffer<float> made;
        std::optional<error_code> answer;
        f.gpu.with({.retry = retry::idempotent}).async_upload(data, [&](error_code ec, buffer<float> b) {
            answer = ec;
            made = std::move(b);
        });
        REQUIRE(::kill(process, SIGKILL) == 0);
        test::run_until(f.io, [&] { return answer.has_value(); });
        REQUIRE_FALSE(*answer);
        CHECK(f.download(made.ref()) == data);
    }
}

TEST_CASE("async_replace moves a device to a new worker")
{
    isolated_fixture f;
    const int first = f.process();
    outcomes got;
    const auto x = f.upload(numbers(100));
    for (int i = 0; i < 20; ++i)
        f.gpu.async_exec(memory::fill<float>{x, 1.0f}, got.count());
    CHECK(await(f.io, f.gpu.async_replace()));
    CHECK(got.good == 20);
    CHECK(f.gpu.status().generation == 2);
    CHECK(f.process() != first);
    CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
}

TEST_CASE("destroyed devices leave no descriptors or child processes behind")
{
    const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
    // Objects that are created once and kept exist after the first device.
    {
        isolated_fixture f;
    }
    const auto before = descriptors();
    for (int i = 0; i < 10; ++i) {
        auto o = isolated_options();
        o.standby = 1;
        isolated_fixture f(o);
        const auto x = f.upload(numbers(1000));
        if (i % 2)
            f.send(SIGKILL);
    }
    CHECK(descriptors() == before);
    int status = 0;
    CHECK(::waitpid(-1, &status, WNOHANG) == -1);
}

TEST_CASE("a worker ends with its parent")
{
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    const pid_t parent = ::fork();
    if (parent == 0) {
        // Only calls that are safe in a child of a multi-threaded process: it executes another program immediately.
        ::dup2(pipe[1], 1);
        ::execl("/proc/self/exe", "isolated", "--test-case=child: prints the process of its worker and waits", "-nh",
                "--no-skip", nullptr);
        ::_exit(9);
    }
    ::close(pipe[1]);
    std::string text;
    char c = 0;
    while (text.find("worker=") == std::string::npos || text.back() != '\n') {
        if (::read(pipe[0], &c, 1) != 1)
            break;
        text += c;
    }
    ::close(pipe[0]);
    const auto at = text.find("worker=");
    REQUIRE(at != std::string::npos);
    const int process = std::stoi(text.substr(at + 7));
    // The process is not a child of this one, so it cannot be waited for.
    const coaccel::detail::unique_fd handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    REQUIRE(handle);
    CHECK(is_running(process));
    ::kill(parent, SIGKILL);
    int status = 0;
    ::waitpid(parent, &status, 0);
    pollfd end{handle.get(), POLLIN, 0};
    CHECK(::poll(&end, 1, test::sanitized ? 10'000 : 1000) == 1);
    CHECK_FALSE(is_running(process));
}

TEST_CASE("child: prints the process of its worker and waits" * doctest::skip())
{
    isolated_fixture f;
    std::printf("worker=%d\n", f.process());
    std::fflush(stdout);
    for (;;)
        ::pause();
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("isolated bad input");

TEST_CASE("a worker program that cannot be run is named in the error")
{
    asio::io_context io{1};
    auto o = isolated_options();
    o.worker.program = "/nowhere/coaccel-worker";
    auto made = await(io, device::async_create(io.get_executor(), o));
    CHECK(made.error() == errc::worker_missing);
    CHECK(made.error().message().find("/nowhere/coaccel-worker") != std::string::npos);
    o.worker.program = "/etc/passwd";
    CHECK(await(io, device::async_create(io.get_executor(), o)).error() == errc::worker_missing);
}

TEST_CASE("a program that is not a worker is detected")
{
    asio::io_context io{1};
    auto o = isolated_options();
    o.restart.max_restarts = 1;
    o.worker.program = "/bin/true";
    const auto ended = await(io, device::async_create(io.get_executor(), o)).error();
    CHECK(ended == errc::worker_exited);
    CHECK_MESSAGE(ended.message().ends_with("/bin/true is not a coaccel worker: it ended with status 0"),
                  ended.message());
    o.worker.start_timeout = 200ms;
    o.worker.program = "/usr/bin/yes";
    const auto ec = await(io, device::async_create(io.get_executor(), o)).error();
    CHECK((ec == errc::worker_late || ec == errc::worker_killed || ec == errc::worker_exited));
}

TEST_CASE("invalid arguments of a caller do not end the worker")
{
    isolated_fixture f;
    const auto x = f.upload(numbers(16));
    const int process = f.process();
    const auto with = [&](auto change) {
        any_ref r = x.ref().raw();
        change(r);
        return f.run(memory::fill<float>{ref<float>::from_raw(r), 1.0f});
    };
    CHECK(with([](any_ref& r) { r = {}; }) == errc::invalid_argument);
    CHECK(with([](any_ref& r) { r.type = dtype(0); }) == errc::wrong_dtype);
    CHECK(with([](any_ref& r) { r.type = dtype(200); }) == errc::wrong_dtype);
    CHECK(with([](any_ref& r) { r.device = 0xffffffff; }) == errc::wrong_device);
    exec_options how;
    how.priority = priority(77);
    CHECK(await(f.io, f.gpu.with(how).async_exec(memory::fill<float>{x, 1.0f})).error() == errc::invalid_argument);
    CHECK_FALSE(f.run(memory::fill<float>{x, 1.0f}));
    CHECK(f.process() == process);
}

TEST_CASE("options out of range are refused")
{
    asio::io_context io{1};
    const auto error_with = [&](auto change) {
        auto o = isolated_options();
        change(o);
        return await(io, device::async_create(io.get_executor(), o)).error();
    };
    CHECK(error_with([](auto& o) { o.standby = -1; }) == errc::invalid_option);
    CHECK(error_with([](auto& o) { o.standby = 5; }) == errc::invalid_option);
    CHECK(error_with([](auto& o) { o.worker.staging_bytes = 1; }) == errc::invalid_option);
    CHECK(error_with([](auto& o) { o.worker.start_timeout = 0s; }) == errc::invalid_option);
    CHECK(error_with([](auto& o) { o.worker.spin = -1s; }) == errc::invalid_option);
    CHECK(error_with([](auto& o) { o.isolation = isolation(9); }) == errc::invalid_option);
}

TEST_CASE("a failed device is revived, with new standbys")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options();
        o.standby = standby;
        o.restart.max_restarts = 0;
        isolated_fixture f(o);
        for (generation g = 2; g <= 3; ++g) {
            const auto x = f.upload(numbers(10));
            const int worker = f.process();
            f.send(SIGKILL);
            test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
            CHECK(await(f.io, f.gpu.async_upload(numbers(10))).error() == errc::device_failed);
            REQUIRE(await(f.io, f.gpu.async_revive()));
            CHECK(f.gpu.status().generation == g);
            CHECK(f.process() != worker);
            CHECK(f.run(memory::fill<float>{x, 1.0f}) == errc::stale_ref);
            CHECK(f.download(f.upload(numbers(1'000'000)).ref()) == numbers(1'000'000));
        }
    }
}

TEST_SUITE_END();

} // namespace test_integration_faults
