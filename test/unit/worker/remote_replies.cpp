#include "fake_worker.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <string>

namespace {

using namespace coaccel;
using namespace coaccel::worker;

std::mutex log_mutex;
std::vector<std::string> log_lines;

worker::link_plan plan_with_log()
{
    worker::link_plan plan;
    plan.start_timeout = std::chrono::hours(1);
    plan.log = [](std::string_view line) {
        const std::scoped_lock lock(log_mutex);
        log_lines.emplace_back(line);
    };
    return plan;
}

std::vector<std::string> logged()
{
    const std::scoped_lock lock(log_mutex);
    return log_lines;
}

class logging_world final : public test::context_world {
public:
    logging_world() { context.completion = completion::polled; }

    detail::context_factory factory() override
    {
        return [this](detail::context_identity identity, detail::context_events& events,
                      const context_options& how) -> result<std::unique_ptr<detail::context>> {
            auto watch = bell_watch::create(io.get_executor(), worker.link->reply_bell().fd(), events);
            REQUIRE(watch);
            remote_setup setup;
            setup.identity = identity;
            setup.memory = staging::create(std::uint64_t(1) << 20).value();
            setup.copy_threads = 1;
            return std::make_unique<remote_context>(std::move(worker.link), std::move(watch), events, how,
                                                    std::move(setup));
        };
    }

    void poison() override {}

    boost::asio::io_context io;
    test::fake_worker worker{plan_with_log()};
};

} // namespace

TEST_SUITE_BEGIN("remote_replies");

TEST_CASE("the reason of a loss is one line of the log, whatever the worker wrote into it")
{
    logging_world w;
    test::context_driver d(w);
    encoder out;
    out.put(verb::lost);
    out.put_error(note_error(errc::context_lost, "bad\ncoaccel-worker 1: all is well\r\x1b[2J \xff k\xc3\xb6ln"));
    w.worker.say(out.record());
    d.run_until([&] { return d.losses > 0; });
    CHECK(d.reason == errc::context_lost);
    const auto lines = logged();
    const auto found = std::ranges::find_if(
        lines, [](const std::string& l) { return l.find("lost its context") != std::string::npos; });
    REQUIRE(found != lines.end());
    CHECK(found->ends_with("lost its context: bad\\x0acoaccel-worker 1: all is well\\x0d\\x1b[2J \\xff k\xc3\xb6ln"));
}

TEST_SUITE_END();
