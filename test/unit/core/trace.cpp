#include <coaccel/core/trace.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace test_core_trace {
namespace {

using namespace coaccel;

/// All fields follow from the number, so that a mixture of two events is recognised.
trace_event numbered(std::uint64_t n)
{
    trace_event e;
    e.begin = trace_event::clock::time_point(std::chrono::nanoseconds(n));
    e.duration = std::chrono::nanoseconds(n);
    e.queued = std::chrono::nanoseconds(n);
    e.id = e.parent = e.leads_to = e.value = n;
    e.text = static_cast<std::uint16_t>(n);
    return e;
}

TEST_SUITE_BEGIN("trace_buffer");

TEST_CASE("the capacity is a power of two within limits")
{
    CHECK(trace_buffer::create(0)->capacity() == 2);
    CHECK(trace_buffer::create(5)->capacity() == 8);
    CHECK(trace_buffer::create(64)->capacity() == 64);
}

TEST_CASE("events are returned unchanged and in order")
{
    const auto b = trace_buffer::create(8);
    CHECK(b->snapshot().events.empty());
    trace_event e = numbered(7);
    e.kind = trace_kind::transfer;
    e.outcome = trace_outcome::lost;
    e.name = {3};
    e.track = {4};
    b->add(e);
    b->add(numbered(8));
    const auto s = b->snapshot();
    CHECK(s.events == std::vector{e, numbered(8)});
    CHECK(s.added == 2);
    CHECK(s.lost == 0);
    CHECK(b->lost() == 0);
}

TEST_CASE("a full buffer overwrites the oldest events and counts them")
{
    const auto b = trace_buffer::create(8);
    for (std::uint64_t n = 0; n < 100; ++n) {
        b->add(numbered(n));
        const auto s = b->snapshot();
        const std::uint64_t first = n < 8 ? 0 : n - 7;
        REQUIRE(s.events.size() == n - first + 1);
        for (std::size_t i = 0; i < s.events.size(); ++i)
            CHECK(s.events[i] == numbered(first + i));
        CHECK(s.lost == first);
        CHECK(b->lost() == first);
        CHECK(b->added() == n + 1);
    }
}

TEST_CASE("a reader never sees a mixture of two events, whatever threads write")
{
    constexpr int writers = 3;
    constexpr std::uint64_t each = 20000;
    // So small that writers overtake each other.
    const auto b = trace_buffer::create(4);
    std::atomic<int> left{writers};
    std::vector<std::thread> threads;
    for (int t = 0; t < writers; ++t)
        threads.emplace_back([&, t] {
            for (std::uint64_t i = 0; i < each; ++i)
                b->add(numbered(i * writers + static_cast<std::uint64_t>(t)));
            --left;
        });
    std::uint64_t seen = 0;
    bool whole = true;
    do {
        for (const trace_event& e : b->snapshot().events) {
            ++seen;
            whole = whole && e == numbered(e.value);
        }
    } while (left > 0);
    for (auto& t : threads)
        t.join();
    CHECK(whole);
    const auto s = b->snapshot();
    seen += s.events.size();
    CHECK(seen > 0);
    // A number is left out if its slot is in use by a writer that was overtaken.
    CHECK(s.added >= writers * each);
    CHECK(s.added < 2 * writers * each);
    CHECK(s.lost == s.added - s.events.size());
}

TEST_CASE("ids differ, also between threads and buffers, and are never zero")
{
    const auto a = trace_buffer::create(2);
    const auto b = trace_buffer::create(2);
    std::set<std::uint64_t> ids;
    for (int i = 0; i < 1000; ++i) {
        ids.insert(a->new_id());
        ids.insert(b->new_id());
    }
    CHECK(ids.size() == 2000);
    CHECK_FALSE(ids.contains(0));
}

TEST_CASE("equal names are stored once, and the first is \"other\"")
{
    const auto b = trace_buffer::create(2);
    const auto x = b->intern("x");
    CHECK(b->intern("x") == x);
    CHECK(b->intern("y") != x);
    CHECK(b->intern("other") == trace_name());
    CHECK(b->snapshot().names == std::vector<std::string>{"other", "x", "y"});
}

TEST_CASE("names beyond the limit become \"other\", and known ones are still found")
{
    const auto b = trace_buffer::create(2);
    const auto first = b->intern("0");
    for (std::size_t i = 1; i < trace_buffer::most_names - 1; ++i)
        CHECK(b->intern(std::to_string(i)) != trace_name());
    CHECK(b->intern("too many") == trace_name());
    CHECK(b->intern("0") == first);
    CHECK(b->snapshot().names.size() == trace_buffer::most_names);
}

TEST_CASE("long names are cut at a whole character")
{
    const auto b = trace_buffer::create(2);
    const std::string filler(trace_buffer::longest_text - 1, 'a');
    b->intern(filler + "b and more");
    b->intern(filler + "\xc3\xa4 and more");
    const auto names = b->snapshot().names;
    CHECK(names[1] == filler + "b");
    CHECK(names[2] == filler);
}

TEST_CASE("tracks of equal names are different tracks, up to the limit")
{
    const auto b = trace_buffer::create(2);
    CHECK(b->add_track("t") != b->add_track("t"));
    for (std::size_t i = 3; i < trace_buffer::most_tracks; ++i)
        CHECK(b->add_track("t") != trace_track());
    CHECK(b->add_track("t") == trace_track());
    CHECK(b->snapshot().tracks.size() == trace_buffer::most_tracks);
}

TEST_CASE("the latest texts are kept, and an old number does not get the text of another")
{
    const auto b = trace_buffer::create(2);
    const auto old = b->add_text("old");
    CHECK(old != 0);
    CHECK(b->snapshot().texts.at(old) == "old");
    // More than there are numbers of 16 bits.
    std::uint16_t last = 0;
    for (std::size_t i = 0; i < 70000; ++i) {
        last = b->add_text("new");
        REQUIRE(last != 0);
        if (i == trace_buffer::most_texts)
            CHECK_FALSE(b->snapshot().texts.contains(old));
    }
    const auto texts = b->snapshot().texts;
    CHECK(texts.size() == trace_buffer::most_texts);
    CHECK(texts.at(last) == "new");
}

TEST_CASE("a traceparent is an event that names the request")
{
    const auto b = trace_buffer::create(2);
    const auto parent = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").value();
    b->add_traceparent(5, parent);
    const auto e = b->snapshot().events.at(0);
    CHECK(e.kind == trace_kind::traceparent);
    CHECK(e.id == 5);
    CHECK(e.parent == parent.parent_id);
    CHECK(e.leads_to == 0x4bf92f3577b34da6);
    CHECK(e.value == 0xa3ce929d0e0e4736);
}

TEST_CASE("kinds and outcomes have names")
{
    CHECK(to_string(trace_kind::request) == "request");
    CHECK(to_string(trace_kind::mark) == "mark");
    CHECK(to_string(trace_kind(99)) == "unknown");
    CHECK(to_string(trace_outcome::lost) == "lost");
    CHECK(to_string(trace_outcome(99)) == "unknown");
}

TEST_SUITE_END();

} // namespace
} // namespace test_core_trace
