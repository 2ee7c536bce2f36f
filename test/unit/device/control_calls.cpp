#include "device/control_calls.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <utility>
#include <vector>

namespace test_device_control_calls {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using kind = request_kind;

struct call final : request {
    explicit call(request_kind what) noexcept : request(what) {}
    void post() override {}
    void destroy() noexcept override {}
};

struct asks final : stats_call {
    void post() override {}
    void destroy() noexcept override {}
};

using answer = std::pair<const request*, error_code>;

struct fixture {
    ~fixture()
    {
        async_op_list left;
        calls.take_all(left);
    }

    /// Adds a call that arrives after all others.
    call& add(kind what)
    {
        call& c = made.emplace_back(what);
        c.sequence = ++arrivals;
        calls.add(c);
        return c;
    }

    auto complete()
    {
        return [this](request& r, const error_code& ec) { answers.emplace_back(&r, ec); };
    }

    /// What was answered since the last call.
    std::vector<answer> take() { return std::exchange(answers, {}); }

    std::uint64_t arrivals = 0;
    std::deque<call> made;
    control_calls calls;
    std::vector<answer> answers;
};

} // namespace

TEST_SUITE_BEGIN("control_calls");

TEST_CASE_FIXTURE(fixture, "a new context answers calls for a start, a replacement and a revival")
{
    const auto& revive = add(kind::revive);
    const auto& replace = add(kind::replace);
    const auto& start = add(kind::start);
    add(kind::shutdown);
    calls.creating(arrivals);
    calls.created(complete());
    CHECK(take() == std::vector<answer>{{&start, {}}, {&replace, {}}, {&revive, {}}});
    calls.created(complete());
    CHECK(take().empty());
}

TEST_CASE_FIXTURE(fixture, "a replacement that is requested during a creation needs another context")
{
    const auto& before = add(kind::replace);
    calls.creating(arrivals);
    const auto& after = add(kind::replace);
    SUBCASE("that succeeds")
    {
        calls.created(complete());
        CHECK(take() == std::vector<answer>{{&before, {}}});
    }
    SUBCASE("that fails")
    {
        calls.create_failed(errc::start_failed, complete());
        CHECK(take() == std::vector<answer>{{&before, errc::start_failed}});
    }
    calls.creating(arrivals);
    calls.created(complete());
    CHECK(take() == std::vector<answer>{{&after, {}}});
}

TEST_CASE_FIXTURE(fixture, "a failed creation that is tried again answers no start and no revival")
{
    add(kind::start);
    add(kind::revive);
    calls.creating(arrivals);
    calls.create_failed(errc::start_failed, complete());
    CHECK(take().empty());
}

TEST_CASE_FIXTURE(fixture, "when the device fails, a start and a revival end with the reason")
{
    const auto& start = add(kind::start);
    const auto& replace = add(kind::replace);
    const auto& revive = add(kind::revive);
    add(kind::shutdown);
    calls.failed(errc::backend_unavailable, complete());
    CHECK(take() == std::vector<answer>{{&replace, errc::device_failed},
                                        {&revive, errc::backend_unavailable},
                                        {&start, errc::backend_unavailable}});
}

TEST_CASE_FIXTURE(fixture, "a device that stops replaces and revives nothing, but may still start")
{
    const auto& start = add(kind::start);
    const auto& replace = add(kind::replace);
    const auto& revive = add(kind::revive);
    const auto& shutdown = add(kind::shutdown);
    calls.stopping(complete());
    CHECK(take() == std::vector<answer>{{&replace, errc::device_stopped}, {&revive, errc::device_stopped}});
    calls.end_starts(complete());
    CHECK(take() == std::vector<answer>{{&start, errc::device_stopped}});
    calls.end_shutdowns(complete());
    CHECK(take() == std::vector<answer>{{&shutdown, {}}});
}

TEST_CASE_FIXTURE(fixture, "a cancelled call is not answered")
{
    for (const auto what : {kind::start, kind::shutdown, kind::replace, kind::revive}) {
        auto& cancelled = add(what);
        const auto& other = add(what);
        CHECK(calls.remove(cancelled));
        calls.stopping(complete());
        calls.end_starts(complete());
        calls.end_shutdowns(complete());
        const auto given = take();
        REQUIRE(given.size() == 1);
        CHECK(given[0].first == &other);
    }
}

TEST_CASE_FIXTURE(fixture, "statistics are answered in order, and cannot be cancelled")
{
    asks first, second;
    calls.add(first);
    calls.add(second);
    CHECK_FALSE(calls.remove(first));
    std::vector<stats_call*> asked;
    calls.answer_stats([&](stats_call& c) { asked.push_back(&c); });
    CHECK(asked == std::vector<stats_call*>{&first, &second});
    calls.answer_stats([](stats_call&) { FAIL("answered twice"); });
}

TEST_CASE_FIXTURE(fixture, "only requests that arrived before a replacement began run on the old context")
{
    CHECK_FALSE(calls.precedes_replacement(1));
    calls.begin_replacement(5);
    CHECK(calls.precedes_replacement(4));
    CHECK_FALSE(calls.precedes_replacement(5));
    CHECK_FALSE(calls.precedes_replacement(6));
}

TEST_CASE_FIXTURE(fixture, "all calls can be taken")
{
    asks stats;
    calls.add(stats);
    for (const auto what : {kind::start, kind::shutdown, kind::replace, kind::revive})
        add(what);
    async_op_list out;
    calls.take_all(out);
    int n = 0;
    while (out.pop_front())
        ++n;
    CHECK(n == 5);
    calls.failed(errc::device_lost, complete());
    calls.end_shutdowns(complete());
    CHECK(take().empty());
}

TEST_SUITE_END();

} // namespace test_device_control_calls
