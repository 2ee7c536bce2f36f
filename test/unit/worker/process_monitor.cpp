#include "worker/process/process_monitor.hpp"

#include "posix/child_process.hpp"
#include "stolen_epoll.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace test_worker_process_monitor {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace coaccel::worker;
using namespace std::chrono_literals;
using strings = std::vector<std::string>;
using end = child_process::end;

/// A process watched by the process_monitor, with all events received for it.
class watched final : public process_observer {
public:
    explicit watched(std::string script, std::chrono::nanoseconds look_every = 0ns)
        : child_(child_process::start({.program = "/bin/sh",
                                       .arguments = {"-c", std::move(script)},
                                       .environment = {"PATH=/bin:/usr/bin"},
                                       .descriptors = {}})
                     .value()),
          errors_(child_.take_errors()), monitor_(process_monitor::shared()), look_every_(look_every)
    {
        REQUIRE(monitor_);
    }

    ~watched() { stop(); }

    void go() { REQUIRE_FALSE(monitor_->add(*this, child_.pidfd(), errors_.get(), look_every_)); }
    void stop() { monitor_ ? monitor_->remove(*this) : void(); }

    void ended() noexcept override
    {
        if (on_end)
            on_end();
        note([&] { ++ended_; });
    }

    void unwatched() noexcept override
    {
        note([&] { ++unwatched_; });
    }

    void said(std::string_view line) noexcept override
    {
        note([&] { lines_.emplace_back(line); });
        if (on_line)
            on_line();
    }

    bool alive(clock::time_point) noexcept override
    {
        note([&] { ++looks_; });
        return on_look ? on_look() : true;
    }

    void wait_for_end()
    {
        wait([&] { return ended_ > 0; });
    }
    void wait_for_lines(std::size_t n)
    {
        wait([&] { return lines_.size() >= n; });
    }
    void wait_for_looks(int n)
    {
        wait([&] { return looks_ >= n; });
    }

    void wait_until_unwatched()
    {
        wait([&] { return unwatched_ > 0; });
    }

    strings lines() { return get(lines_); }
    int looks() { return get(looks_); }
    int times_ended() { return get(ended_); }
    child_process& child() { return child_; }
    std::shared_ptr<process_monitor>& boss() { return monitor_; }

    std::function<void()> on_line, on_end;
    std::function<bool()> on_look;

private:
    template <class F>
    void note(F f)
    {
        const std::scoped_lock lock(mutex_);
        f();
        changed_.notify_all();
    }

    template <class F>
    void wait(F f)
    {
        std::unique_lock lock(mutex_);
        REQUIRE(changed_.wait_for(lock, 60s, f));
    }

    template <class T>
    T get(const T& value)
    {
        const std::scoped_lock lock(mutex_);
        return value;
    }

    child_process child_;
    unique_fd errors_;
    std::shared_ptr<process_monitor> monitor_;
    std::chrono::nanoseconds look_every_;
    std::mutex mutex_;
    std::condition_variable changed_;
    strings lines_;
    int looks_ = 0;
    int ended_ = 0;
    int unwatched_ = 0;
};

strings outcome_of(const char* script)
{
    watched w(script);
    w.go();
    w.wait_for_end();
    return w.lines();
}

/// Returns after the process_monitor's thread has handled everything so far, so that further calls to an observer would
/// be visible.
void let_monitor_pass()
{
    watched other("exit 0");
    other.go();
    other.wait_for_end();
}

} // namespace

TEST_SUITE_BEGIN("process_monitor");

TEST_CASE("the end of a process is reported once, after its last line")
{
    watched w("echo one >&2; echo two >&2; exit 5");
    std::size_t lines_at_end = 0;
    w.on_end = [&] { lines_at_end = w.lines().size(); };
    w.go();
    w.wait_for_end();
    let_monitor_pass();
    CHECK(w.times_ended() == 1);
    CHECK(lines_at_end == 2);
    CHECK(w.lines() == strings{"one", "two"});
    CHECK(w.child().ended() == end{false, 5});
}

TEST_CASE("the end of a killed process is reported")
{
    watched w("echo ready >&2; exec sleep 1000 2>&-");
    w.go();
    w.wait_for_lines(1);
    CHECK(w.times_ended() == 0);
    w.child().kill();
    w.wait_for_end();
    CHECK(w.child().ended() == end{true, SIGKILL});
}

TEST_CASE("standard error arrives in printable lines")
{
    CHECK(outcome_of("printf 'a\\n\\nb' >&2") == strings{"a", "", "b"});
    CHECK(outcome_of("printf 'a\\tb\\r\\033[1m\\001\\177\\n' >&2") == strings{"a\tb\\x0d\\x1b[1m\\x01\\x7f"});
    CHECK(outcome_of("printf 'k\\303\\266ln\\n' >&2") == strings{"k\303\266ln"});
    CHECK(outcome_of("printf 'k\\303\\n\\266ln\\n' >&2") == strings{"k\\xc3", "\\xb6ln"});
    CHECK(outcome_of("exit 1").empty());
    // In two writes that split a line.
    CHECK(outcome_of("printf 'first sec' >&2; printf 'ond\\n' >&2") == strings{"first second"});
}

TEST_CASE("a long line arrives in parts")
{
    const auto x = [](std::size_t n) { return std::string(n, 'x'); };
    CHECK(outcome_of("printf '%1024s\\ny\\n' '' | tr ' ' x >&2") == strings{x(1024), "y"});
    CHECK(outcome_of("printf '%1025s\\ny\\n' '' | tr ' ' x >&2") == strings{x(1024), "x", "y"});
    CHECK(outcome_of("printf '%2500s' '' | tr ' ' x >&2") == strings{x(1024), x(1024), x(452)});
    // Lines are not split within a character.
    CHECK(outcome_of("{ printf '%1023s' '' | tr ' ' x; printf '\\303\\266y'; } >&2") == strings{x(1023), "\303\266y"});
}

TEST_CASE("output larger than a pipe buffer arrives complete and in order")
{
    const auto lines = outcome_of("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done >&2");
    REQUIRE(lines.size() == 20000);
    for (std::size_t i = 0; i < lines.size(); i += 997)
        CHECK(lines[i] == std::to_string(i));
    CHECK(lines.back() == "19999");
}

TEST_CASE("the last line is reported when standard error closes, while the process runs")
{
    watched w("printf rest >&2; exec 2>&-; exec sleep 1000");
    w.go();
    w.wait_for_lines(1);
    CHECK(w.lines() == strings{"rest"});
    CHECK(w.times_ended() == 0);
    w.child().kill();
    w.wait_for_end();
}

TEST_CASE("the end is reported while another process holds standard error open")
{
    watched w("sleep 1000 & echo $! >&2");
    w.go();
    w.wait_for_end();
    REQUIRE(w.lines().size() == 1);
    ::kill(std::stoi(w.lines().front()), SIGKILL);
}

TEST_CASE("a process without standard error is watched too")
{
    watched w("exit 0");
    REQUIRE_FALSE(w.boss()->add(w, w.child().pidfd(), -1, 0ns));
    w.wait_for_end();
    CHECK(w.lines().empty());
}

TEST_CASE("an observer is polled at its interval until it returns false")
{
    watched w("exec sleep 1000", 1ms), other("exec sleep 1000", 1ms);
    w.on_look = [&] { return w.looks() < 5; };
    const auto before = process_observer::clock::now();
    w.go();
    w.wait_for_looks(5);
    CHECK(process_observer::clock::now() - before >= 5ms);
    other.go();
    other.wait_for_looks(10);
    CHECK(w.looks() == 5);
    CHECK(w.times_ended() == 0);
    w.child().kill();
    w.wait_for_end();
}

TEST_CASE("an observer is polled while another process floods its standard error, and not without an interval")
{
    watched flood("while :; do echo x; done >&2"), quiet("exec sleep 1000", 1ms);
    flood.go();
    quiet.go();
    flood.wait_for_lines(100);
    quiet.wait_for_looks(quiet.looks() + 5);
    CHECK(flood.looks() == 0);
}

TEST_CASE("a descriptor that cannot be watched is an error, and the observer can be added again")
{
    watched w("exec sleep 1000");
    CHECK(w.boss()->add(w, -1, -1, 0ns) == errc::out_of_memory);
    CHECK(w.boss()->add(w, w.child().pidfd(), 1 << 20, 0ns) == errc::out_of_memory);
    w.go();
}

TEST_CASE("lines and ends of many processes reach their own observers")
{
    std::vector<std::unique_ptr<watched>> all;
    for (int i = 0; i < 40; ++i) {
        const auto number = std::to_string(i);
        all.push_back(
            std::make_unique<watched>("echo " + number + " >&2; echo again " + number + " >&2; exit " + number, 2ms));
        all.back()->go();
    }
    for (int i = 0; i < 40; ++i) {
        auto& w = *all[static_cast<std::size_t>(i)];
        w.wait_for_end();
        CHECK(w.lines() == strings{std::to_string(i), "again " + std::to_string(i)});
        CHECK(w.child().ended() == end{false, i});
        CHECK(w.times_ended() == 1);
    }
}

TEST_CASE("a removed observer gets no more calls, even in the middle of its output")
{
    for (std::size_t i = 1; i <= 20; ++i) {
        watched w("while :; do echo x; done >&2", 1ms);
        w.go();
        w.wait_for_lines(10 * i);
        w.stop();
        const auto lines = w.lines().size();
        const auto looks = w.looks();
        w.child().kill();
        (void)w.child().wait();
        let_monitor_pass();
        CHECK(w.lines().size() == lines);
        CHECK(w.looks() == looks);
        CHECK(w.times_ended() == 0);
    }
}

TEST_CASE("removal waits for the running call")
{
    watched w("echo x >&2; exec sleep 1000 2>&-");
    std::mutex mutex;
    std::condition_variable changed;
    bool removing = false;
    bool returned = false;
    w.on_line = [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return removing; });
        lock.unlock();
        // Gives a removal that does not wait the time to return, so that the check detects it.
        for (int i = 0; i < 1000; ++i)
            std::this_thread::yield();
        lock.lock();
        returned = true;
    };
    w.go();
    w.wait_for_lines(1);
    {
        const std::scoped_lock lock(mutex);
        removing = true;
        changed.notify_all();
    }
    w.stop();
    const std::scoped_lock lock(mutex);
    CHECK(returned);
}

TEST_CASE("an observer may remove itself in each of its calls, and gets no more calls")
{
    watched line("printf '1\\n2\\n3\\n' >&2; exit 0"), look("exec sleep 1000", 1ms), over("exit 0");
    line.on_line = [&] { line.stop(); };
    look.on_look = [&] { return look.stop(), true; };
    over.on_end = [&] { over.stop(); };
    line.go();
    look.go();
    over.go();
    line.wait_for_lines(1);
    look.wait_for_looks(1);
    over.wait_for_end();
    (void)line.child().wait();
    let_monitor_pass();
    CHECK(line.lines() == strings{"1"});
    CHECK(line.times_ended() == 0);
    CHECK(look.looks() == 1);
    CHECK(over.times_ended() == 1);
}

TEST_CASE("an observer may add another process when its own has ended")
{
    watched first("exit 0"), second("echo second >&2");
    first.on_end = [&] { second.go(); };
    first.go();
    second.wait_for_end();
    CHECK(second.lines() == strings{"second"});
}

TEST_CASE("the monitor is destroyed with its last user and created again for the next one")
{
    std::weak_ptr<process_monitor> old = process_monitor::shared();
    CHECK(old.expired());
    const auto one = process_monitor::shared();
    CHECK(one == process_monitor::shared());
    CHECK(one.use_count() == 1);
}

TEST_CASE("the last user may release the monitor within a call")
{
    watched w("exit 0");
    std::weak_ptr<process_monitor> old = w.boss();
    w.on_end = [&] { w.boss().reset(); };
    w.go();
    w.wait_for_end();
    CHECK(old.expired());
    let_monitor_pass();
}

TEST_CASE("signals to the process are handled by its other threads")
{
    static std::atomic<bool> seen_by_monitor{false};
    static std::atomic<int> seen{0};
    static thread_local bool is_monitor = false;
    watched w("echo x >&2; exec sleep 1000 2>&-", 1ms);
    w.on_line = [&] { is_monitor = true; };
    auto* const old = std::signal(SIGUSR1, [](int) {
        ++seen;
        if (is_monitor)
            seen_by_monitor = true;
    });
    w.go();
    w.wait_for_lines(1);
    sigset_t mine, before;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    // With the signal blocked on this thread, it would be delivered to the process_monitor's thread if that did not
    // block it.
    ::pthread_sigmask(SIG_BLOCK, &mine, &before);
    ::kill(::getpid(), SIGUSR1);
    w.wait_for_looks(w.looks() + 5);
    CHECK(seen == 0);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    w.wait_for_looks(w.looks() + 1);
    CHECK(seen == 1);
    CHECK_FALSE(seen_by_monitor);
    std::signal(SIGUSR1, old);
}

TEST_CASE("when the program closes the monitor's descriptors, each observer is notified and a new monitor is created")
{
    const test::stolen_epoll epoll;
    watched first("exec sleep 1000", 1ms), second("exec sleep 1000", 1ms);
    first.go();
    second.go();
    first.wait_for_looks(1);
    epoll.steal();
    first.wait_until_unwatched();
    second.wait_until_unwatched();
    const auto looks = first.looks();
    CHECK(first.boss()->add(first, first.child().pidfd(), -1, 0ns));
    CHECK(process_monitor::shared() != first.boss());
    let_monitor_pass();
    CHECK(first.looks() == looks);
    CHECK(first.times_ended() == 0);
}

TEST_CASE("a forked child does not affect its parent's monitor")
{
    watched w("echo ready >&2; exec sleep 1000");
    w.go();
    w.wait_for_lines(1);
    const auto pid = ::fork();
    if (pid == 0) {
        w.stop();
        const bool refused = w.boss()->add(w, w.child().pidfd(), -1, 0ns) == errc::start_failed;
        w.boss().reset();
        ::_exit(refused && !process_monitor::shared() ? 7 : 8);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(w.times_ended() == 0);
    w.child().kill();
    w.wait_for_end();
}

TEST_SUITE_END();

} // namespace test_worker_process_monitor
