#include "worker/standbys.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <deque>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using namespace std::chrono_literals;

/// What becomes of a worker: it lives until it is killed, or has already ended when it is started, before it was ready
/// or after; or it lives and is not ready yet.
enum class fate : std::uint8_t { lives, is_starting, dies, is_stillborn, refuses, cannot_start };

/// Starts processes that only sleep, with what a worker would have said by then.
class starts {
public:
    explicit starts(std::deque<fate> fates = {}, fate others = fate::lives) : fates_(std::move(fates)), others_(others)
    {}

    standbys::starter how()
    {
        return [this] { return start(); };
    }

    /// How many tries there were, once there are so many.
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
    result<standbys::link_ptr> start()
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
        auto area = shared_area::create(control_bytes, "test").value();
        auto* block = new (area.bytes().data()) control_block;
        ring_writer out(block->replies, area.bytes().subspan(ring_offset + ring_bytes, ring_bytes));
        if (f != fate::is_stillborn && f != fate::is_starting)
            REQUIRE(out.write(greeting(f).record()) == written::yes);
        link_plan plan;
        plan.start_timeout = 1h;
        plan.log = [](std::string_view) {};
        auto link =
            std::make_unique<worker_link>(plan, std::move(area), doorbell::create().value(), doorbell::create().value(),
                                          unique_fd(), std::move(child).value(), overseer::shared());
        if (f != fate::lives && f != fate::is_starting) {
            link->end(errc::worker_exited);
            link->wait_for_end();
        }
        return link;
    }

    static encoder greeting(fate f)
    {
        encoder out;
        out.put(f == fate::refuses ? verb::refused : verb::ready);
        if (f == fate::refuses) {
            out.put_error(errc::out_of_memory);
        } else {
            out.put_text("none");
            put_hardware(out, {});
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

TEST_SUITE_BEGIN("standbys");

TEST_CASE("one that is ready is taken before an older one that is not")
{
    starts made({fate::is_starting, fate::lives, fate::is_starting});
    standbys s(3);
    s.top_up(made.how());
    const auto first = s.take();
    CHECK(first->replies().has_record());
    const auto second = s.take();
    CHECK_FALSE(second->replies().has_record());
    CHECK(s.take());
    CHECK_FALSE(s.take());
}

TEST_CASE("those that are missing are started, and no more")
{
    starts made;
    standbys s(2);
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

TEST_CASE("none is started when none is wanted")
{
    starts made;
    standbys s(0);
    s.top_up(made.how());
    CHECK(made.tries() == 0);
    CHECK_FALSE(s.take());
}

TEST_CASE("one that ends is replaced in the background")
{
    starts made;
    standbys s(1, 0ns);
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

TEST_CASE("one that ended before anybody could be told is replaced too")
{
    starts made({fate::dies, fate::dies});
    standbys s(1, 0ns);
    s.top_up(made.how());
    CHECK(made.wait_for(3) == 3);
    const auto last = s.take();
    REQUIRE(last);
    CHECK_FALSE(last->has_ended());
}

TEST_CASE("one that ended before it was ready is not replaced until the next is needed")
{
    for (const fate f : {fate::is_stillborn, fate::refuses}) {
        CAPTURE(int(f));
        starts made({f, fate::lives});
        standbys s(2, 0ns);
        s.top_up(made.how());
        made.kill_last();
        // For the second; that the first has ended was to be seen before.
        CHECK(made.wait_for(3) == 3);
        CHECK(s.take());
        CHECK_FALSE(s.take());
        CHECK(made.tries() == 3);
        s.top_up(made.how());
        CHECK(made.tries() == 5);
    }
}

TEST_CASE("one that cannot be started is not tried again until the next is needed")
{
    starts made({fate::lives, fate::cannot_start, fate::cannot_start});
    standbys s(2, 0ns);
    s.top_up(made.how());
    CHECK(made.tries() == 2);
    made.kill_last();
    CHECK(made.wait_for(3) == 3);
    CHECK_FALSE(s.take());
    CHECK(made.tries() == 3);
    s.top_up(made.how());
    CHECK(made.tries() == 5);
}

TEST_CASE("workers that die at once are not started one after another")
{
    starts made({}, fate::dies);
    standbys s(1, 1h);
    s.top_up(made.how());
    CHECK(made.wait_for(2) == 2);
    // The second is still there, or seen to have ended; in neither case is there a third.
    const auto second = s.take();
    CHECK((!second || second->has_ended()));
    CHECK(made.tries() == 2);
    // Who needs one does not wait for the pause to end.
    s.top_up(made.how());
    CHECK(made.tries() == 3);
}

TEST_CASE("a pause between two tries ends, and then there is another")
{
    starts made({}, fate::dies);
    standbys s(1, 10ms);
    const auto begin = std::chrono::steady_clock::now();
    s.top_up(made.how());
    made.wait_for(5);
    // Neither before the one that was asked for, nor before the first in the background.
    CHECK(std::chrono::steady_clock::now() - begin >= 30ms);
}

TEST_CASE("it may go at any time")
{
    for (int round = 0; round < 20; ++round) {
        starts made({}, round % 2 ? fate::dies : fate::lives);
        standbys s(2, 0ns);
        s.top_up(made.how());
        if (round % 2)
            made.wait_for(3 + round % 5);
        else
            made.kill_last();
    }
}

TEST_CASE("a forked child has none, and leaves those of its parent alone")
{
    starts made;
    standbys s(1, 0ns);
    s.top_up(made.how());
    const auto pid = ::fork();
    if (pid == 0) {
        ::alarm(20);
        const bool none = !s.take();
        s.top_up(made.how());
        s.~standbys();
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
