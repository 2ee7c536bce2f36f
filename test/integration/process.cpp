#include "isolated.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <thread>

namespace test_integration_process {

using namespace coaccel;
using namespace std::chrono_literals;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;
using test::worker_log;

namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The word after a label.
std::string value_of(const std::string& text, const std::string& label)
{
    const auto at = text.find(label);
    REQUIRE(at != std::string::npos);
    std::istringstream rest(text.substr(at + label.size()));
    std::string word;
    rest >> word;
    return word;
}

std::set<std::string> threads()
{
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator("/proc/self/task"))
        all.insert(entry.path().string());
    return all;
}

/// Kills the worker, and returns the reason that the device reports.
error_code reason_of_kill()
{
    auto o = isolated_options();
    o.restart.initial_backoff = 0ms;
    isolated_fixture f(o);
    error_code reason;
    f.send(SIGKILL);
    test::run_until(f.io, [&] {
        const auto s = f.gpu.status();
        if (s.reason)
            reason = s.reason;
        return s.generation == generation(2);
    });
    return reason;
}

} // namespace

TEST_SUITE_BEGIN("isolated process");

TEST_CASE("a worker ended by its device is logged as such, not as one that exited by itself")
{
    std::string name;
    {
        isolated_fixture f;
        name = "worker " + std::to_string(f.process());
    }
    CHECK(worker_log::has(name + " was ended by this process"));
    CHECK_FALSE(worker_log::has(name + " ended with status"));
}

TEST_CASE("a worker has close-on-exec descriptors, no new privileges, a raised OOM score and no core dumps")
{
    isolated_fixture f;
    const auto proc = "/proc/" + std::to_string(f.process());
    for (int d = 3; d <= 7; ++d) {
        CAPTURE(d);
        const auto flags = value_of(text_of(proc + "/fdinfo/" + std::to_string(d)), "flags:");
        CHECK((std::stol(flags, nullptr, 8) & O_CLOEXEC) != 0);
    }
    CHECK(value_of(text_of(proc + "/status"), "NoNewPrivs:") == "1");
    const int here = std::stoi(text_of("/proc/self/oom_score_adj"));
    CHECK(std::stoi(text_of(proc + "/oom_score_adj")) == std::min(here + 500, 1000));
    // Zero if this process may not dump core either.
    const auto core = value_of(text_of(proc + "/limits"), "Max core file size");
    CHECK((core == "1" || core == "0"));
}

TEST_CASE("a worker may dump core like its parent if the options allow it")
{
    auto o = isolated_options();
    o.worker.core_dumps = true;
    isolated_fixture f(o);
    const auto limit = [](const std::string& process) {
        return value_of(text_of("/proc/" + process + "/limits"), "Max core file size");
    };
    CHECK(limit(std::to_string(f.process())) == limit("self"));
}

TEST_CASE("the death of a worker is reported the same where the program ignores SIGCHLD or reaps every child")
{
    CHECK(reason_of_kill() == errc::worker_killed);
    {
        auto* const old = std::signal(SIGCHLD, SIG_IGN);
        CHECK(reason_of_kill() == errc::worker_killed);
        std::signal(SIGCHLD, old);
    }
    std::atomic<bool> stop{false};
    std::thread reaper([&] {
        while (!stop) {
            (void)::waitpid(-1, nullptr, WNOHANG);
            std::this_thread::yield();
        }
    });
    CHECK(reason_of_kill() == errc::worker_killed);
    stop = true;
    reaper.join();
}

TEST_CASE("threads of the library block signals, except those that crash handlers and profilers need")
{
    const auto before = threads();
    auto o = isolated_options();
    o.standby = 1;
    isolated_fixture f(o);
    // Large enough to use copy threads.
    const auto data = numbers(std::size_t(4) << 20);
    CHECK(f.download(f.upload(data).ref()) == data);
    // Threads inherit the mask of the thread that starts them, so they have it from the start.
    int seen = 0;
    for (const auto& thread : threads()) {
        if (before.contains(thread))
            continue;
        CAPTURE(thread);
        const auto blocked = std::stoull(value_of(text_of(thread + "/status"), "SigBlk:"), nullptr, 16);
        const auto blocks = [&](int signal) { return (blocked >> (signal - 1) & 1) != 0; };
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF, SIGXCPU}) {
            CAPTURE(signal);
            CHECK_FALSE(blocks(signal));
        }
        for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGPIPE}) {
            CAPTURE(signal);
            CHECK(blocks(signal));
        }
        ++seen;
    }
    CHECK(seen >= 4);
}

TEST_CASE("every worker has the CPU affinity of the thread that created its device")
{
    cpu_set_t all;
    REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
    if (CPU_COUNT(&all) < 2) {
        MESSAGE("not checked: there is one CPU");
        return;
    }
    const auto has = [](isolated_fixture& f, const cpu_set_t& wanted) {
        cpu_set_t found;
        REQUIRE(::sched_getaffinity(f.process(), sizeof found, &found) == 0);
        return CPU_EQUAL(&found, &wanted) != 0;
    };
    isolated_fixture first;
    CHECK(has(first, all));
    cpu_set_t one;
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        ++cpu;
    CPU_SET(cpu, &one);
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    isolated_fixture pinned;
    REQUIRE(::sched_setaffinity(0, sizeof all, &all) == 0);
    CHECK(has(pinned, one));
    REQUIRE(test::await(pinned.io, pinned.gpu.async_replace()));
    CHECK(has(pinned, one));
    isolated_fixture last;
    CHECK(has(last, all));
}

TEST_SUITE_END();

} // namespace test_integration_process
