#include "worker/parent/standby_pool.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <deque>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

namespace test_worker_standby_pool {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace coaccel::worker;
using namespace std::chrono_literals;

/// The behaviour of a simulated worker: it lives until it is killed, has already ended when it is started, before or
/// after it was ready, or lives and is not ready yet.
enum class fate : std::uint8_t { lives, is_starting, dies, is_stillborn, refuses, cannot_start };

/// Starts processes that only sleep, with the replies that a worker would have written by then.
class starts {
public:
    explicit starts(std::deque<fate> fates = {}, fate others = fate::lives) : fates_(std::move(fates)), others_(others)
    {}

    standby_pool::starter how()
    {
        return [this] { return start(); };
    }

    /// Waits for `n` attempts and returns their number.
    int wait_for(int n)
    {
        std::unique_lock lock(mutex_);
        REQUIRE(changed_.wait_for(lock, 60s, [&] { return tries_ >= n; }));
        return tries_;
    }

    int tries()
    {
        const std::scoped_lock lock(mutex_);
        return tries_;
    }

    void kill_last()
    {
        const std::scoped_lock lock(mutex_);
        REQUIRE(::kill(last_, SIGKILL) == 0);
    }

private:
    result<standby_pool::link_ptr> start()
    {
        const std::scoped_lock lock(mutex_);
        ++tries_;
        changed_.notify_all();
        fate f = others_;
        if (!fates_.empty()) {
            f = fates_.front();
            fates_.pop_front();
        }
        if (f == fate::cannot_start)
            return errc::worker_missing;
        auto child = child_process::start(
            {.program = "/bin/sleep", .arguments = {"1000"}, .environment = {}, .descriptors = {}});
        REQUIRE(child);
        last_ = child.value().pid();
        auto area = shared_memory::create(control_bytes, "test").value();
        auto* block = new (area.bytes().data()) control_block;
        ring_writer out(block->replies, area.bytes().subspan(ring_offset + ring_bytes, ring_bytes));
        if (f != fate::is_stillborn && f != fate::is_starting)
            REQUIRE(out.write(greeting(f).record()) == written::yes);
        link_plan plan;
        plan.start_timeout = 1h;
        plan.log = [](std::string_view) {};
        auto link = std::make_unique<worker_link>(
            plan, std::move(area), doorbell::create().value(), doorbell::create().value(), unique_fd(),
            std::move(descriptor_socket::create().value().first), std::move(child).value(), process_monitor::shared());
        if (f != fate::lives && f != fate::is_starting) {
            link->end(errc::worker_exited);
            link->wait_for_end();
        }
        return link;
    }

    static encoder greeting(fate f)
    {
        encoder out;
        out.put(f == fate::refuses ? message_type::refused : message_type::ready);
        if (f == fate::refuses) {
            out.put_error(errc::out_of_memory);
        } else {
            out.put_text("none");
            put_hardware(out, {});
            out.put(exporting::no);
        }
        return out;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<fate> fates_;
    const fate others_;
    int tries_ = 0;
    pid_t last_ = 0;
};

} // namespace

TEST_SUITE_BEGIN("standby_pool");

TEST_CASE("a ready standby is taken before an older one that is not ready")
{
    starts made({fate::is_starting, fate::lives, fate::is_starting});
    standby_pool s(3);
    s.top_up(made.how());
    const auto first = s.take();
    CHECK(first->replies().has_record());
    const auto second = s.take();
    CHECK_FALSE(second->replies().has_record());
    CHECK(s.take());
    CHECK_FALSE(s.take());
}

TEST_CASE("only missing standbys are started")
{
    starts made;
    standby_pool s(2);
    CHECK_FALSE(s.take());
    s.top_up(made.how());
    CHECK(made.tries() == 2);
    s.top_up(made.how());
    CHECK(made.tries() == 2);
    const auto first = s.take();
    REQUIRE(first);
    CHECK_FALSE(first->wait_until_ready());
    s.top_up(made.how());
    CHECK(made.tries() == 3);
    CHECK(s.take());
    CHECK(s.take());
    CHECK_FALSE(s.take());
    CHECK(made.tries() == 3);
}

TEST_CASE("a pool of size zero starts no standby")
{
    starts made;
    standby_pool s(0);
    s.top_up(made.how());
    CHECK(made.tries() == 0);
    CHECK_FALSE(s.take());
}

TEST_CASE("a standby that ends is replaced in the background")
{
    starts made;
    standby_pool s(1, 0ns);
    s.top_up(made.how());
    for (int n = 2; n < 10; ++n) {
        made.kill_last();
        CHECK(made.wait_for(n) == n);
    }
    const auto last = s.take();
    REQUIRE(last);
    CHECK_FALSE(last->has_ended());
    CHECK_FALSE(last->wait_until_ready());
    CHECK_FALSE(s.take());
}

TEST_CASE("a standby that ended before its end could be reported is replaced too")
{
    starts made({fate::dies, fate::dies});
    standby_pool s(1, 0ns);
    s.top_up(made.how());
    CHECK(made.wait_for(3) == 3);
    const auto last = s.take();
    REQUIRE(last);
    CHECK_FALSE(last->has_ended());
}

TEST_CASE("a standby that ended before it was ready is not replaced until the next top-up")
{
    for (const fate f : {fate::is_stillborn, fate::refuses}) {
        CAPTURE(int(f));
        starts made({f, fate::lives});
        standby_pool s(2, 0ns);
        s.top_up(made.how());
        made.kill_last();
        // The third start replaces the second worker; the first, which ended before it was ready, is not replaced.
        CHECK(made.wait_for(3) == 3);
        CHECK(s.take());
        CHECK_FALSE(s.take());
        CHECK(made.tries() == 3);
        s.top_up(made.how());
        CHECK(made.tries() == 5);
    }
}

TEST_CASE("a standby that cannot be started is not retried until the next top-up")
{
    starts made({fate::lives, fate::cannot_start, fate::cannot_start});
    standby_pool s(2, 0ns);
    s.top_up(made.how());
    CHECK(made.tries() == 2);
    made.kill_last();
    CHECK(made.wait_for(3) == 3);
    CHECK_FALSE(s.take());
    CHECK(made.tries() == 3);
    s.top_up(made.how());
    CHECK(made.tries() == 5);
}

TEST_CASE("repeated restarts of a standby that dies immediately are delayed")
{
    starts made({}, fate::dies);
    standby_pool s(1, 1h);
    s.top_up(made.how());
    CHECK(made.wait_for(2) == 2);
    // The second is still in the pool, or its end was detected; in neither case is there a third.
    const auto second = s.take();
    CHECK((!second || second->has_ended()));
    CHECK(made.tries() == 2);
    // A top_up() does not wait for the pause to end.
    s.top_up(made.how());
    CHECK(made.tries() == 3);
}

TEST_CASE("a restart follows after the pause")
{
    starts made({}, fate::dies);
    standby_pool s(1, 10ms);
    const auto begin = std::chrono::steady_clock::now();
    s.top_up(made.how());
    made.wait_for(5);
    // Three pauses: there is none before the start by top_up(), nor before the first one in the background.
    CHECK(std::chrono::steady_clock::now() - begin >= 30ms);
}

TEST_CASE("the pool may be destroyed at any time")
{
    for (int round = 0; round < 20; ++round) {
        starts made({}, round % 2 ? fate::dies : fate::lives);
        standby_pool s(2, 0ns);
        s.top_up(made.how());
        if (round % 2)
            made.wait_for(3 + round % 5);
        else
            made.kill_last();
    }
}

TEST_CASE("a forked child has no standbys, and does not affect those of its parent")
{
    starts made;
    standby_pool s(1, 0ns);
    s.top_up(made.how());
    const auto pid = ::fork();
    if (pid == 0) {
        ::alarm(20);
        const bool none = !s.take();
        s.top_up(made.how());
        s.~standby_pool();
        ::_exit(none ? 7 : 8);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(made.tries() == 1);
    made.kill_last();
    CHECK(made.wait_for(2) == 2);
    const auto last = s.take();
    REQUIRE(last);
    CHECK_FALSE(last->has_ended());
}

TEST_SUITE_END();

} // namespace test_worker_standby_pool
