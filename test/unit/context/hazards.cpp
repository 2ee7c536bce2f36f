#include "context/lanes/hazards.hpp"

#include "support/dense.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace test_context_hazards {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
// Not `access`: POSIX has a function of that name.
using usage = coaccel::access;

constexpr usage modes[] = {usage::read, usage::write, usage::read_write};

/// A frontier as lane -> ticket.
std::map<lane_id, std::uint64_t> as_map(const frontier& f)
{
    std::map<lane_id, std::uint64_t> all;
    for (const point& p : f) {
        CHECK(!all.contains(p.lane));
        all[p.lane] = p.ticket;
    }
    return all;
}

/// Reference model that keeps every access.
struct full_history {
    struct entry {
        usage mode;
        point at;
    };

    std::map<lane_id, std::uint64_t> waits_for(usage mode) const
    {
        std::map<lane_id, std::uint64_t> all;
        auto add = [&](point p) { all[p.lane] = std::max(all[p.lane], p.ticket); };
        for (auto e = entries.rbegin(); e != entries.rend(); ++e) {
            if (writes(e->mode)) {
                add(e->at);
                break;
            }
            if (writes(mode))
                add(e->at);
        }
        return all;
    }

    std::vector<entry> entries;
};

} // namespace

TEST_SUITE_BEGIN("hazards");

TEST_CASE("a frontier keeps the latest point of each lane")
{
    frontier f;
    advance(f, {2, 5});
    advance(f, {1, 3});
    advance(f, {2, 4});
    CHECK(as_map(f) == std::map<lane_id, std::uint64_t>{{1, 3}, {2, 5}});
    advance(f, {2, 6});
    advance(f, {0, 1});
    CHECK(as_map(f) == std::map<lane_id, std::uint64_t>{{0, 1}, {1, 3}, {2, 6}});
    for (lane_id lane = 3; lane < 40; ++lane)
        advance(f, {lane, lane});
    CHECK(as_map(f).size() == 40);
}

TEST_CASE("a buffer that was never used waits for nothing")
{
    const access_log log;
    lane_clock clock;
    clock.add_lane();
    for (const auto mode : modes) {
        frontier f;
        log.collect(mode, f);
        CHECK(f.empty());
    }
    frontier uses;
    log.collect_uses(clock, uses);
    CHECK(uses.empty());
}

TEST_CASE("readers wait for the last writer, writers for it and for the readers since")
{
    access_log log;
    auto waits = [&](usage mode) {
        frontier f;
        log.collect(mode, f);
        return as_map(f);
    };
    using expected = std::map<lane_id, std::uint64_t>;
    log.note(usage::write, {0, 1});
    CHECK(waits(usage::read) == expected{{0, 1}});
    CHECK(waits(usage::write) == expected{{0, 1}});
    log.note(usage::read, {1, 4});
    log.note(usage::read, {2, 9});
    log.note(usage::read, {1, 5});
    CHECK(waits(usage::read) == expected{{0, 1}});
    CHECK(waits(usage::write) == expected{{0, 1}, {1, 5}, {2, 9}});
    CHECK(waits(usage::read_write) == expected{{0, 1}, {1, 5}, {2, 9}});
    log.note(usage::read_write, {2, 10});
    CHECK(waits(usage::read) == expected{{2, 10}});
    CHECK(waits(usage::write) == expected{{2, 10}});
}

TEST_CASE("collecting keeps the points that are already in the frontier")
{
    access_log log;
    log.note(usage::write, {0, 3});
    frontier f;
    advance(f, {0, 7});
    advance(f, {1, 1});
    log.collect(usage::read, f);
    CHECK(as_map(f) == std::map<lane_id, std::uint64_t>{{0, 7}, {1, 1}});
}

TEST_CASE("the log agrees with a full history, for every short history")
{
    // Every history of five accesses with three access modes on two lanes.
    constexpr int choices = 3 * 2;
    for (int code = 0; code < choices * choices * choices * choices * choices; ++code) {
        access_log log;
        full_history history;
        std::uint64_t tickets[2] = {};
        bool right = true;
        for (int step = 0, rest = code; step < 5; ++step, rest /= choices) {
            const auto mode = modes[rest % 3];
            const auto lane = static_cast<lane_id>(rest % choices / 3);
            for (const auto asked : modes) {
                frontier f;
                log.collect(asked, f);
                right &= as_map(f) == history.waits_for(asked);
            }
            const point at{lane, ++tickets[lane]};
            log.note(mode, at);
            history.entries.push_back({mode, at});
        }
        if (!right)
            FAIL_CHECK("history ", code);
    }
}

TEST_CASE("uses are the points that have not passed")
{
    lane_clock clock;
    for (int i = 0; i < 3; ++i)
        clock.add_lane();
    access_log log;
    log.note(usage::write, {0, 2});
    log.note(usage::read, {1, 1});
    log.note(usage::read, {2, 5});
    auto uses = [&] {
        frontier f;
        log.collect_uses(clock, f);
        return as_map(f);
    };
    using expected = std::map<lane_id, std::uint64_t>;
    CHECK(uses() == expected{{0, 2}, {1, 1}, {2, 5}});
    clock.pass({0, 1});
    CHECK(uses() == expected{{0, 2}, {1, 1}, {2, 5}});
    clock.pass({0, 2});
    CHECK(uses() == expected{{1, 1}, {2, 5}});
    clock.pass({2, 6});
    CHECK(uses() == expected{{1, 1}});
    clock.pass({1, 1});
    CHECK(uses().empty());
}

TEST_CASE("a lane waits for a point of another lane once, and never for its own or a passed one")
{
    lane_clock clock;
    const auto a = clock.add_lane();
    const auto b = clock.add_lane();
    CHECK(clock.lanes() == 2);
    CHECK_FALSE(clock.must_wait(a, {a, 9}));
    CHECK_FALSE(clock.must_wait(a, {b, 0}));
    CHECK(clock.must_wait(a, {b, 3}));
    CHECK_FALSE(clock.must_wait(a, {b, 3}));
    CHECK_FALSE(clock.must_wait(a, {b, 2}));
    CHECK(clock.must_wait(a, {b, 4}));
    CHECK(clock.must_wait(b, {a, 1}));
    clock.pass({b, 10});
    CHECK(clock.passed({b, 10}));
    CHECK_FALSE(clock.passed({b, 11}));
    CHECK_FALSE(clock.must_wait(a, {b, 10}));
    CHECK(clock.must_wait(a, {b, 11}));
}

TEST_CASE("a lane added later must wait for other lanes, and they must wait for it")
{
    lane_clock clock;
    const auto a = clock.add_lane();
    const auto b = clock.add_lane();
    CHECK(clock.must_wait(a, {b, 5}));
    const auto c = clock.add_lane();
    CHECK(c == 2);
    CHECK(clock.must_wait(c, {b, 5}));
    CHECK(clock.must_wait(a, {c, 1}));
    CHECK_FALSE(clock.must_wait(a, {b, 5}));
}

namespace {

/// One command of a stream: work, or a wait for another stream.
struct step {
    bool is_wait;
    point other;
    std::uint64_t ticket;
    int op;
};

struct access_of {
    std::size_t buffer;
    usage mode;
    element_range where;
};

bool conflict(const access_of& a, const access_of& b)
{
    return a.buffer == b.buffer && (writes(a.mode) || writes(b.mode)) && a.where.overlaps(b.where);
}

} // namespace

// access_log and lane_clock are driven as the engine drives them. Then the lanes run in many random interleavings that
// respect the requested waits. In each, every two conflicting ops must run in the order in which they were issued.
TEST_CASE("on random histories, conflicting ops run in the order they were issued")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    test::engine random(seed);
    auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    // Ranges of a buffer of sixteen elements: parts, which may cover all elements, or all_elements.
    auto pick_range = [&]() -> element_range {
        if (pick(4) == 0)
            return all_elements;
        const auto begin = pick(16);
        return {begin, begin + 1 + pick(16 - begin)};
    };

    for (int history = 0; history < 600; ++history) {
        const std::size_t lane_count = 1 + pick(history % 10 == 0 ? 12 : 5);
        const std::size_t buffer_count = 1 + pick(4);
        const int op_count = 5 + static_cast<int>(pick(40));

        lane_clock clock;
        std::vector<std::vector<step>> lanes(lane_count);
        std::vector<std::uint64_t> tickets(lane_count, 0);
        std::vector<std::size_t> done(lane_count, 0);
        std::vector<std::uint64_t> ended(lane_count, 0);
        std::vector<access_log> logs(buffer_count);
        std::vector<std::vector<access_of>> ops;
        std::vector<int> order;
        std::size_t waits_made = 0;
        for (std::size_t i = 0; i < lane_count; ++i)
            clock.add_lane();

        // Runs one step on a lane that is not blocked. False if all are blocked or empty.
        auto advance_some_lane = [&] {
            std::vector<std::size_t> able;
            for (std::size_t l = 0; l < lane_count; ++l) {
                if (done[l] == lanes[l].size())
                    continue;
                const auto& s = lanes[l][done[l]];
                if (!s.is_wait || ended[s.other.lane] >= s.other.ticket)
                    able.push_back(l);
            }
            if (able.empty())
                return false;
            const auto l = able[pick(able.size())];
            const auto& s = lanes[l][done[l]++];
            if (!s.is_wait) {
                order.push_back(s.op);
                ended[l] = s.ticket;
            }
            return true;
        };

        for (int op = 0; op < op_count; ++op) {
            const auto lane = static_cast<lane_id>(pick(lane_count));
            std::vector<access_of> uses;
            for (std::size_t i = 0, n = 1 + pick(3); i < n; ++i)
                uses.push_back({pick(buffer_count), modes[pick(3)], pick_range()});
            frontier waits;
            for (const auto& u : uses)
                logs[u.buffer].collect(u.mode, u.where, waits);
            for (const point& p : waits)
                if (clock.must_wait(lane, p)) {
                    lanes[lane].push_back({true, p, 0, 0});
                    ++waits_made;
                }
            lanes[lane].push_back({false, {}, ++tickets[lane], op});
            for (const auto& u : uses)
                logs[u.buffer].note(u.mode, u.where, {lane, tickets[lane]}, clock);
            ops.push_back(uses);

            // Meanwhile the device makes progress, and the engine polls now and then.
            for (std::size_t i = pick(4); i > 0; --i)
                advance_some_lane();
            if (pick(3) == 0) {
                const auto l = static_cast<lane_id>(pick(lane_count));
                if (ended[l] > 0)
                    clock.pass({l, ended[l]});
            }
            // If a buffer has no uses left, all ops that name it have run.
            const auto b = pick(buffer_count);
            frontier uses_left;
            logs[b].collect_uses(clock, uses_left);
            if (uses_left.empty())
                for (int o = 0; o <= op; ++o)
                    if (std::ranges::find(ops[static_cast<std::size_t>(o)], b, &access_of::buffer) !=
                        ops[static_cast<std::size_t>(o)].end())
                        CHECK(std::ranges::find(order, o) != order.end());
        }
        while (advance_some_lane()) {
        }
        REQUIRE_MESSAGE(order.size() == static_cast<std::size_t>(op_count), "the lanes wait for each other for ever");

        std::vector<std::size_t> position(static_cast<std::size_t>(op_count));
        for (std::size_t i = 0; i < order.size(); ++i)
            position[static_cast<std::size_t>(order[i])] = i;
        for (std::size_t first = 0; first < ops.size(); ++first)
            for (std::size_t second = first + 1; second < ops.size(); ++second)
                for (const auto& x : ops[first])
                    for (const auto& y : ops[second])
                        if (conflict(x, y) && position[first] > position[second])
                            FAIL("op ", second, " overtook op ", first);
        if (lane_count == 1)
            CHECK(waits_made == 0);
    }
}

TEST_CASE("a few uses of parts wait for exactly the uses they conflict with")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    test::engine random(seed);
    auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int history = 0; history < 2000; ++history) {
        lane_clock clock;
        for (int i = 0; i < 4; ++i)
            clock.add_lane();
        access_log log;
        struct use {
            access_of what;
            point at;
        };
        std::vector<use> uses;
        std::uint64_t tickets[4] = {};
        for (std::size_t n = 0; n < access_log::most_parts; ++n) {
            const auto begin = pick(16);
            const access_of next{0, modes[pick(3)], {begin, begin + 1 + pick(16 - begin)}};
            frontier waits;
            log.collect(next.mode, next.where, waits);
            for (const point& p : waits)
                CHECK(std::ranges::any_of(uses, [&](const use& u) { return u.at == p && conflict(u.what, next); }));
            const auto lane = static_cast<lane_id>(pick(4));
            const point at{lane, ++tickets[lane]};
            log.note(next.mode, next.where, at, clock);
            uses.push_back({next, at});
        }
    }
}

TEST_CASE("parts that do not overlap do not wait for each other, up to eight of them")
{
    lane_clock clock;
    for (int i = 0; i < 20; ++i)
        clock.add_lane();
    access_log log;
    const auto part = [](std::uint64_t i) { return element_range{10 * i, 10 * i + 10}; };
    const auto waits = [&](usage mode, element_range where) {
        frontier f;
        log.collect(mode, where, f);
        return as_map(f);
    };
    for (lane_id i = 0; i < 8; ++i) {
        CHECK(waits(usage::write, part(i)).empty());
        log.note(usage::write, part(i), {i, 1}, clock);
    }
    CHECK(waits(usage::read, part(3)) == std::map<lane_id, std::uint64_t>{{3, 1}});
    CHECK(waits(usage::read, {35, 45}) == std::map<lane_id, std::uint64_t>{{3, 1}, {4, 1}});
    CHECK(waits(usage::read, all_elements).size() == 8);
    // The ninth use in flight on a separate lane no longer fits as an individual part.
    log.note(usage::write, part(8), {8, 1}, clock);
    CHECK(waits(usage::read, part(3)).size() == 8);
    CHECK(waits(usage::read, part(8)).size() == 9);
    // A write of the whole buffer replaces all earlier uses.
    log.note(usage::write, all_elements, {9, 1}, clock);
    CHECK(waits(usage::read, part(3)) == std::map<lane_id, std::uint64_t>{{9, 1}});
}

TEST_CASE("parts that have passed or are on one lane make room for others")
{
    lane_clock clock;
    clock.add_lane();
    clock.add_lane();
    access_log log;
    const auto part = [](std::uint64_t i) { return element_range{10 * i, 10 * i + 10}; };
    const auto waits = [&](usage mode, element_range where) {
        frontier f;
        log.collect(mode, where, f);
        return as_map(f);
    };
    using expected = std::map<lane_id, std::uint64_t>;
    for (std::uint64_t i = 0; i < 100; ++i) {
        clock.pass({0, i > 4 ? i - 4 : 0});
        log.note(usage::write, part(i), {0, i + 1}, clock);
        CHECK(waits(usage::write, part(i + 1)).empty());
    }
    // No further point passes: eight uses on one lane are merged into one, from the first to the last element.
    log = {};
    for (std::uint64_t i = 200; i < 208; ++i)
        log.note(usage::write, part(i), {1, i}, clock);
    log.note(usage::write, part(300), {1, 300}, clock);
    CHECK(waits(usage::read, part(204)).at(1) == 207);
    CHECK(waits(usage::read, part(300)) == expected{{1, 300}});
    CHECK(waits(usage::read, part(301)).empty());
}

TEST_SUITE_END();

} // namespace test_context_hazards
