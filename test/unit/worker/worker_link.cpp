#include "worker/parent/worker_link.hpp"

#include "fake_worker.hpp"
#include "stolen_epoll.hpp"
#include "support/temporary_folder.hpp"
#include "support/undying.hpp"
#include "worker/process/find_program.hpp"
#include "worker/transport/staging.hpp"

#include <coaccel/core/log.hpp>
#include <coaccel/device/device_options.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <poll.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace test_worker_worker_link {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace coaccel::worker;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::mutex log_mutex;
std::vector<std::string> log_lines;

void log(std::string_view line)
{
    const std::scoped_lock lock(log_mutex);
    log_lines.emplace_back(line);
}

bool logged(const std::string& text)
{
    REQUIRE(flush_log(20s));
    const std::scoped_lock lock(log_mutex);
    for (const auto& l : log_lines)
        if (l.find(text) != std::string::npos)
            return true;
    return false;
}

/// A program that gets no arguments, like a worker.
class script {
public:
    explicit script(const std::string& text)
    {
        std::ofstream(path()) << "#!/bin/sh\n" << text << '\n';
        fs::permissions(path(), fs::perms::owner_all);
    }

    std::string path() const { return folder_ / "program"; }

private:
    test::temporary_folder folder_;
};

class fixture {
public:
    fixture()
    {
        plan.setup.kind = static_cast<std::uint8_t>(device_kind::host);
        plan.setup.host.threads = 1;
        plan.setup.staging_bytes = memory->bytes();
        plan.staging_fd = memory->fd();
        plan.environment = detail::copy_environment();
        plan.start_timeout = 60s;
        plan.log = &log;
    }

    void use_worker()
    {
        const auto found = find_program(nullptr);
        REQUIRE(found);
        plan.program = found.value();
    }

    std::unique_ptr<worker_link> start()
    {
        auto made = worker_link::start(plan);
        REQUIRE(made);
        return std::move(made).value();
    }

    error_code outcome_of(const std::string& text)
    {
        const script s(text);
        plan.program = s.path();
        return start()->wait_until_ready();
    }

    std::shared_ptr<staging> memory = staging::create(std::uint64_t(1) << 20).value();
    link_plan plan;
};

bool contains(const error_code& ec, const std::string& text)
{
    return ec.message().find(text) != std::string::npos;
}

bool exists(int pid)
{
    return ::kill(pid, 0) == 0;
}

error_code greeting(const encoder& said)
{
    test::fake_worker f({.program = {}, .setup = {}, .start_timeout = 60s, .heartbeat = {}, .log = &log});
    f.say(said.record());
    return f.link->wait_until_ready();
}

} // namespace

TEST_SUITE_BEGIN("worker_link");

TEST_CASE("a program that is absent or not executable is reported as missing")
{
    fixture f;
    for (const char* program : {"/nonexistent/coaccel-worker", "/tmp", "/etc/passwd"}) {
        CAPTURE(program);
        f.plan.program = program;
        CHECK(worker_link::start(f.plan).error() == errc::worker_missing);
    }
}

TEST_CASE("a program that exits is reported with its exit status")
{
    fixture f;
    f.plan.program = "/bin/true";
    auto ec = f.start()->wait_until_ready();
    CHECK(ec == errc::worker_exited);
    CHECK(contains(ec, "status 0"));
    ec = f.outcome_of("exit 3");
    CHECK(ec == errc::worker_exited);
    CHECK(contains(ec, "status 3"));
}

TEST_CASE("a program that is not a worker is reported as such, with its exit status and output")
{
    fixture f;
    const auto tail = [](const error_code& ec) {
        const std::string text = ec.message();
        return text.substr(text.find(": ") + 2);
    };
    f.plan.program = "/bin/true";
    CHECK(tail(f.start()->wait_until_ready()) == "/bin/true is not a coaccel worker: it ended with status 0");
    {
        const script s("echo 'usage: tool FILE' >&2; echo more >&2; exit 2");
        f.plan.program = s.path();
        CHECK(tail(f.start()->wait_until_ready()) ==
              s.path() + " is not a coaccel worker: it ended with status 2 and printed \"usage: tool FILE\"");
    }
    {
        const script s("echo 'cannot open shared object file' >&2; exit 127");
        f.plan.program = s.path();
        CHECK(tail(f.start()->wait_until_ready()) ==
              s.path() + " cannot be run: it ended with status 127 and printed \"cannot open shared object file\"");
    }
    f.plan.start_timeout = 50ms;
    const script s("exec sleep 1000");
    f.plan.program = s.path();
    CHECK(tail(f.start()->wait_until_ready()) == s.path() + " is not a coaccel worker: it did not answer within 50 ms");
}

TEST_CASE("a program that ends by a signal is reported as killed")
{
    fixture f;
    const auto ec = f.outcome_of("kill -9 $$");
    CHECK(ec == errc::worker_killed);
    CHECK(contains(ec, "signal 9"));
    CHECK(f.outcome_of("kill -SEGV $$") == errc::worker_killed);
}

TEST_CASE("a program of another build is detected by its exit status")
{
    fixture f;
    CHECK(f.outcome_of("exit 70") == errc::worker_mismatch);
}

TEST_CASE("a program that never becomes ready is reported as late and killed")
{
    fixture f;
    f.plan.start_timeout = 50ms;
    const script s("exec sleep 1000");
    f.plan.program = s.path();
    const auto begin = std::chrono::steady_clock::now();
    auto link = f.start();
    CHECK(link->wait_until_ready() == errc::worker_late);
    CHECK(std::chrono::steady_clock::now() - begin >= 50ms);
    link->wait_for_end();
    CHECK(link->has_ended());
    CHECK(link->reason() == errc::worker_late);
}

TEST_CASE("the standard error of a worker is written to the log")
{
    fixture f;
    (void)f.outcome_of("echo 'no such luck' >&2; exit 1");
    CHECK(logged(": no such luck"));
}

TEST_CASE("a ready worker reports its backend and hardware")
{
    fixture f;
    f.use_worker();
    auto link = f.start();
    REQUIRE_FALSE(link->wait_until_ready());
    CHECK(link->backend() == "host");
    CHECK(link->hardware().name == "CPU");
    CHECK(link->now().total > 0);
    CHECK_FALSE(link->has_ended());
    const int pid = link->hardware().process;
    CHECK(exists(pid));
    CHECK(logged("worker " + std::to_string(pid) + ": ready after"));
    link.reset();
    CHECK_FALSE(exists(pid));
}

TEST_CASE("the death of a worker calls the listener and rings the doorbell")
{
    fixture f;
    f.use_worker();
    auto link = f.start();
    REQUIRE_FALSE(link->wait_until_ready());
    std::atomic<int> calls{0};
    link->listen({[](void* n) noexcept { ++*static_cast<std::atomic<int>*>(n); }, &calls});
    REQUIRE(::kill(link->hardware().process, SIGKILL) == 0);
    CHECK(link->reply_bell().wait(60s));
    link->wait_for_end();
    CHECK(calls == 1);
    CHECK(link->reason() == errc::worker_killed);
    // The first reason stays.
    link->end(errc::worker_hung);
    CHECK(link->reason() == errc::worker_killed);
}

TEST_CASE("a worker ended by its link keeps the reason")
{
    fixture f;
    f.use_worker();
    for (const auto why : {errc::worker_corrupted, errc::worker_hung, errc::context_lost}) {
        auto link = f.start();
        REQUIRE_FALSE(link->wait_until_ready());
        link->end(why);
        CHECK(link->reason() == why);
        link->end(errc::worker_exited);
        link->wait_for_end();
        CHECK(link->reason() == why);
        CHECK(contains(link->reason(), std::to_string(link->hardware().process)));
    }
}

TEST_CASE("a killed worker that does not end is reported immediately, and again when it ends")
{
    fixture f;
    f.use_worker();
    auto link = f.start();
    REQUIRE_FALSE(link->wait_until_ready());
    test::undying process(link->hardware().process);
    if (!process)
        return;
    std::atomic<int> calls{0};
    link->listen({[](void* n) noexcept { ++*static_cast<std::atomic<int>*>(n); }, &calls});
    CHECK_FALSE(link->is_doomed());
    link->end(errc::worker_hung);
    CHECK(link->is_doomed());
    CHECK(calls == 1);
    CHECK(link->reply_bell().wait(0s));
    CHECK(link->reason() == errc::worker_hung);
    CHECK(link->wait_until_ready() == errc::worker_hung);
    link->end(errc::worker_exited);
    CHECK(calls == 1);
    CHECK_FALSE(link->has_ended());
    process.die();
    CHECK(link->wait_for_end());
    CHECK(calls == 2);
    CHECK(link->has_ended());
    CHECK(link->reason() == errc::worker_hung);
}

TEST_CASE("a worker that cannot be killed delays the link only briefly, and is reaped when it ends")
{
    fixture f;
    f.use_worker();
    f.plan.patience = 0ns;
    auto link = f.start();
    REQUIRE_FALSE(link->wait_until_ready());
    const int pid = link->hardware().process;
    test::undying process(pid);
    if (!process)
        return;
    const unique_fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    link->end(errc::worker_hung);
    CHECK_FALSE(link->wait_for_end());
    link.reset();
    CHECK(exists(pid));
    CHECK(logged("worker " + std::to_string(pid) + ": was killed and does not end"));
    process.die();
    pollfd end{handle.get(), POLLIN, 0};
    REQUIRE(::poll(&end, 1, 60'000) == 1);
    // The process_monitor handles ends one after another.
    CHECK(f.outcome_of("exit 3") == errc::worker_exited);
    CHECK_FALSE(exists(pid));
}

TEST_CASE("the link waits for the end of a killed worker up to the patience of the plan")
{
    fixture f;
    f.use_worker();
    f.plan.patience = 60s;
    auto link = f.start();
    REQUIRE_FALSE(link->wait_until_ready());
    link->end(errc::worker_hung);
    CHECK(link->wait_for_end());
    CHECK(link->has_ended());
    CHECK(link->wait_for_end());
}

TEST_CASE("infinite timeouts do not overflow")
{
    fixture f;
    f.use_worker();
    f.plan.start_timeout = f.plan.heartbeat = std::chrono::nanoseconds::max();
    auto link = f.start();
    CHECK_FALSE(link->wait_until_ready());
    CHECK_FALSE(link->is_doomed());
}

TEST_CASE("a log function that throws loses only the line")
{
    fixture f;
    f.use_worker();
    static std::atomic<int> calls;
    calls = 0;
    f.plan.log = [](std::string_view) {
        ++calls;
        throw std::runtime_error("no room for a line");
    };
    auto link = f.start();
    CHECK_FALSE(link->wait_until_ready());
    link->end(errc::worker_hung);
    CHECK(link->wait_for_end());
    link.reset();
    REQUIRE(flush_log(20s));
    CHECK(calls == 2);
}

TEST_CASE("a worker without heartbeats is killed")
{
    test::fake_worker f({.program = {}, .setup = {}, .start_timeout = 60s, .heartbeat = 100ms, .log = &log});
    f.block->beats = 1;
    f.link->wait_for_end();
    CHECK(f.link->reason() == errc::worker_hung);
}

TEST_CASE("a worker that is stopped right after it became ready is killed")
{
    fixture f;
    f.use_worker();
    f.plan.heartbeat = 100ms;
    auto link = f.start();
    REQUIRE_FALSE(link->wait_until_ready());
    REQUIRE(::kill(link->hardware().process, SIGSTOP) == 0);
    CHECK(link->reply_bell().wait(10s));
    CHECK(link->wait_for_end());
    CHECK(link->reason() == errc::worker_hung);
}

TEST_CASE("a worker that cannot create its context reports the reason")
{
    fixture f;
    f.use_worker();
    f.plan.setup.host.faults.refuse_starts = 1;
    auto link = f.start();
    CHECK(link->wait_until_ready() == errc::start_failed);
    link->wait_for_end();
    CHECK(link->reason() == errc::worker_exited);
}

TEST_CASE("a worker with shared memory of the wrong size exits with a log line")
{
    fixture f;
    f.use_worker();
    f.plan.setup.staging_bytes += 4096;
    CHECK(f.start()->wait_until_ready() == errc::worker_exited);
    CHECK(logged("the shared memory does not have"));
}

TEST_CASE("a malformed first message is a corrupted worker")
{
    encoder ready;
    ready.put(message_type::ready);
    ready.put_text("name");
    put_hardware(ready, {.name = "hardware"});
    ready.put(exporting::yes);
    CHECK_FALSE(greeting(ready));

    encoder out = ready;
    out.put(std::uint8_t{0});
    CHECK(greeting(out) == errc::worker_corrupted);
    for (const std::size_t n : {1u, 4u, 20u}) {
        out.clear();
        out.put_bytes(ready.record().first(n));
        CHECK(greeting(out) == errc::worker_corrupted);
    }
    for (const int v : {0, 1, 4, 7, 8, 255}) {
        CAPTURE(v);
        out.clear();
        out.put(static_cast<std::uint8_t>(v));
        out.put_bytes(ready.record().subspan(1));
        CHECK(greeting(out) == errc::worker_corrupted);
    }
}

TEST_CASE("a worker that refuses to start reports an error")
{
    const auto refusal = [](const error_code& ec) {
        encoder out;
        out.put(message_type::refused);
        out.put_error(ec);
        return greeting(out);
    };
    CHECK(refusal(errc::no_device) == errc::no_device);
    CHECK(refusal(make_error_with_message(errc::library_missing, "libx")).message() == "libx");
    // In another process it says nothing about this one.
    CHECK(refusal(errc::context_lost) == errc::start_failed);
    CHECK(refusal({}) == errc::worker_corrupted);
}

TEST_CASE("an impossible ring position at the start is a corrupted worker")
{
    test::fake_worker f({.program = {}, .setup = {}, .start_timeout = 60s, .heartbeat = {}, .log = &log});
    f.block->replies.written = 12345;
    CHECK(f.link->wait_until_ready() == errc::worker_corrupted);
    f.link->wait_for_end();
    CHECK(f.link->reason() == errc::worker_corrupted);
}

TEST_CASE("a message sent before the end of the worker is still read")
{
    test::fake_worker f({.program = {}, .setup = {}, .start_timeout = 60s, .heartbeat = {}, .log = &log});
    encoder out;
    out.put(message_type::ready);
    out.put_text("name");
    put_hardware(out, {.name = "hardware"});
    out.put(exporting::no);
    f.say(out.record());
    f.link->end(errc::worker_hung);
    f.link->wait_for_end();
    CHECK_FALSE(f.link->wait_until_ready());
    CHECK(f.link->reason() == errc::worker_hung);
}

TEST_CASE("a worker is lost when the program closes the descriptors that watch it")
{
    fixture f;
    f.use_worker();
    const test::stolen_epoll epoll;
    const auto link = f.start();
    REQUIRE_FALSE(link->wait_until_ready());
    epoll.steal();
    CHECK(link->wait_for_end());
    const auto ec = link->reason();
    CHECK(ec == errc::context_lost);
    CHECK_MESSAGE(contains(ec, "has closed descriptors of coaccel"), ec.message());
    // The next worker is watched again.
    CHECK_FALSE(f.start()->wait_until_ready());
}

TEST_SUITE_END();

} // namespace test_worker_worker_link
