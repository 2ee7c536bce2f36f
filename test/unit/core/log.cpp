#include "core/log_queue.hpp"
#include "support/captured_stderr.hpp"

#include <coaccel/core/log.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <utility>
#include <vector>

namespace test_core_log {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;

constexpr auto long_enough = 20s;

/// Restores the default sink and level.
struct default_log {
    default_log() = default;
    default_log(const default_log&) = delete;
    default_log& operator=(const default_log&) = delete;
    ~default_log()
    {
        // Messages that still wait are discarded.
        set_log_sink(log_level::off, {});
        CHECK(flush_log(long_enough));
        set_log_sink(log_level::warning, {});
    }
};

struct collected {
    std::mutex mutex;
    std::vector<std::pair<log_level, std::string>> all;

    void add(log_level level, std::string_view message)
    {
        const std::scoped_lock lock(mutex);
        all.emplace_back(level, message);
    }

    std::vector<std::pair<log_level, std::string>> take()
    {
        REQUIRE(flush_log(long_enough));
        const std::scoped_lock lock(mutex);
        return std::exchange(all, {});
    }
};

/// A sink that blocks until it is released.
class stuck_sink {
public:
    void operator()(log_level, std::string_view)
    {
        std::unique_lock lock(mutex_);
        ++calls_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_; });
    }

    void wait_for_call()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return calls_ > 0; });
    }

    void open()
    {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int calls_ = 0;
    bool open_ = false;
};

} // namespace

TEST_SUITE_BEGIN("log");

TEST_CASE("without a sink, warnings and errors go to standard error")
{
    test::captured_stderr err;
    CHECK_FALSE(detail::log_enabled(log_level::info));
    CHECK(detail::log_enabled(log_level::warning));
    detail::log(log_level::info, "device 1: quiet");
    detail::log(log_level::warning, "device 1: odd");
    detail::log(log_level::error, "device 1: broken");
    REQUIRE(flush_log(long_enough));
    CHECK(err.text() == "coaccel: warning: device 1: odd\ncoaccel: error: device 1: broken\n");
}

TEST_CASE("an empty sink stands for standard error at the given level")
{
    const default_log restored;
    test::captured_stderr err;
    set_log_sink(log_level::debug, {});
    detail::log(log_level::debug, "verbose");
    REQUIRE(flush_log(long_enough));
    CHECK(err.text() == "coaccel: debug: verbose\n");
    set_log_sink(log_level::off, {});
    detail::log(log_level::error, "unheard");
    detail::log(log_level::off, "unheard");
    REQUIRE(flush_log(long_enough));
    CHECK(err.text().empty());
}

TEST_CASE("a sink gets messages at or above its level, and standard error gets none")
{
    const default_log restored;
    test::captured_stderr err;
    collected got;
    set_log_sink(log_level::info, [&](log_level l, std::string_view m) { got.add(l, m); });
    detail::log(log_level::debug, "a");
    detail::log(log_level::info, "b");
    detail::log(log_level::error, "c");
    const auto all = got.take();
    REQUIRE(all.size() == 2);
    CHECK(all[0] == std::pair(log_level::info, std::string("b")));
    CHECK(all[1] == std::pair(log_level::error, std::string("c")));
    CHECK(err.text().empty());
}

TEST_CASE("log_to delivers its message at any level")
{
    const default_log restored;
    set_log_sink(log_level::off, {});
    static collected got;
    detail::log_to([](std::string_view m) { got.add(log_level::off, m); }, "for you");
    const auto all = got.take();
    REQUIRE(all.size() == 1);
    CHECK(all[0].second == "for you");
}

TEST_CASE("a message is lost if the sink throws, and the next message is not")
{
    const default_log restored;
    collected got;
    set_log_sink(log_level::warning, [&](log_level l, std::string_view m) {
        if (m == "bad")
            throw std::runtime_error("no");
        got.add(l, m);
    });
    detail::log(log_level::warning, "bad");
    detail::log(log_level::warning, "good");
    const auto all = got.take();
    REQUIRE(all.size() == 1);
    CHECK(all[0].second == "good");
}

TEST_CASE("a blocked sink does not block the loggers, and dropped messages are counted")
{
    const default_log restored;
    stuck_sink stuck;
    std::atomic<std::uint64_t> calls = 0;
    std::string last;
    set_log_sink(log_level::warning, [&](log_level l, std::string_view m) {
        stuck(l, m);
        ++calls;
        last = m;
    });
    detail::log(log_level::warning, "first");
    stuck.wait_for_call();
    constexpr std::size_t many = detail::log_queue::most_messages + 234;
    for (std::size_t i = 0; i < many; ++i)
        detail::log(log_level::warning, "more");
    CHECK_FALSE(flush_log(1ms));
    stuck.open();
    REQUIRE(flush_log(long_enough));
    CHECK(calls == 1 + detail::log_queue::most_messages + 1);
    CHECK(last == "log: 234 messages dropped");
}

TEST_CASE("a standard error that is not read blocks neither the loggers nor the next sink")
{
    const default_log restored;
    test::captured_stderr err;
    err.fill();
    for (int i = 0; i < 10'000; ++i)
        detail::log(log_level::warning, "a line");
    CHECK_FALSE(flush_log(1ms));
    std::atomic<int> calls = 0;
    set_log_sink(log_level::warning, [&](log_level, std::string_view) { ++calls; });
    detail::log(log_level::warning, "another");
    CHECK(flush_log(long_enough));
    CHECK(calls > 0);
}

TEST_CASE("a standard error that is read again gets the waiting lines and the count of dropped ones")
{
    test::captured_stderr err;
    err.fill();
    for (int i = 0; i < 10'000; ++i)
        detail::log(log_level::warning, "a line");
    const auto all = err.text_until("dropped\n");
    CHECK(all.find("coaccel: warning: a line\n") != std::string::npos);
    CHECK(all.find(" messages dropped\n") != std::string::npos);
}

TEST_CASE("a standard error without a reader does not raise SIGPIPE in the program")
{
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int ends[2];
        if (::signal(SIGPIPE, SIG_DFL) == SIG_ERR || ::pipe(ends) != 0 || ::dup2(ends[1], 2) != 2)
            ::_exit(1);
        ::close(ends[0]);
        ::close(ends[1]);
        detail::log(log_level::warning, "a line");
        ::_exit(flush_log(long_enough) ? 0 : 2);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the former sink is not called after another is set")
{
    const default_log restored;
    for (int i = 0; i < 100; ++i) {
        auto alive = std::make_unique<std::atomic<bool>>(true);
        std::atomic<int> late = 0;
        set_log_sink(log_level::warning, [&, p = alive.get()](log_level, std::string_view) { late += !*p; });
        detail::log(log_level::warning, "a");
        detail::log(log_level::warning, "b");
        set_log_sink(log_level::off, {});
        *alive = false;
        detail::log(log_level::warning, "c");
        CHECK(late == 0);
        // The sanitizers detect a call after this.
        alive.reset();
    }
}

TEST_CASE("a sink may log, and set another sink")
{
    const default_log restored;
    collected got;
    set_log_sink(log_level::warning, [&](log_level, std::string_view) {
        detail::log(log_level::warning, "from the sink");
        CHECK_FALSE(flush_log(1ms));
        set_log_sink(log_level::warning, [&](log_level l, std::string_view m) { got.add(l, m); });
    });
    detail::log(log_level::warning, "a");
    const auto all = got.take();
    REQUIRE(all.size() == 1);
    CHECK(all[0].second == "from the sink");
}

TEST_CASE("threads may log while others set sinks")
{
    const default_log restored;
    std::atomic<bool> over = false;
    std::atomic<std::uint64_t> calls = 0;
    std::vector<std::thread> threads;
    set_log_sink(log_level::warning, [&](log_level, std::string_view) { ++calls; });
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&] {
            while (!over)
                detail::log(log_level::warning, "a");
        });
    for (int i = 0; i < 200; ++i)
        set_log_sink(log_level::warning, [&](log_level, std::string_view) { ++calls; });
    while (calls == 0)
        std::this_thread::yield();
    over = true;
    for (auto& t : threads)
        t.join();
    CHECK(flush_log(long_enough));
}

TEST_CASE("levels have names")
{
    CHECK(to_string(log_level::debug) == "debug");
    CHECK(to_string(log_level::info) == "info");
    CHECK(to_string(log_level::warning) == "warning");
    CHECK(to_string(log_level::error) == "error");
    CHECK(to_string(log_level::off) == "off");
    CHECK(to_string(static_cast<log_level>(99)) == "unknown");
}

TEST_CASE("a forked child logs independently of its parent's threads, and can flush its messages")
{
    test::captured_stderr err;
    std::atomic<bool> over = false;
    std::thread busy([&] {
        while (!over)
            detail::log(log_level::debug, "unwanted"), detail::log_to([](std::string_view) {}, "to nobody");
    });
    for (int i = 0; i < 20; ++i) {
        const auto child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            ::alarm(20);
            detail::log(log_level::warning, "from the child");
            // Flushes as at exit, without destroying the parent's objects.
            ::_exit(flush_log(long_enough) ? 0 : 1);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
        // The output may also contain the parent's report of dropped messages.
        CHECK(err.text_until("from the child").find("coaccel: warning: from the child\n") != std::string::npos);
    }
    over = true;
    busy.join();
}

TEST_SUITE_END();

} // namespace test_core_log
