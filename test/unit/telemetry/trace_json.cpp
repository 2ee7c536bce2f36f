#include "support/temporary_folder.hpp"

#include <coaccel/core/error.hpp>
#include <coaccel/telemetry/trace_json.hpp>

// The library itself, which only this file uses.
#include <boost/json/src.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

namespace test_telemetry_trace_json {
namespace {

using namespace coaccel;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using telemetry::trace_json;
namespace json = boost::json;

constexpr trace_event::clock::time_point start{std::chrono::seconds(100)};

/// A snapshot that was taken at a known time.
trace_snapshot empty_snapshot()
{
    trace_snapshot s;
    s.names = {"other"};
    s.tracks = {"other"};
    s.start = start;
    s.system_start = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
    return s;
}

trace_event span(trace_kind kind, nanoseconds begin, nanoseconds duration)
{
    trace_event e;
    e.kind = kind;
    e.begin = start + begin;
    e.duration = duration;
    return e;
}

/// The events of this phase.
std::vector<json::object> events_of(const std::string& text, std::string_view phase)
{
    std::vector<json::object> found;
    const json::value parsed = json::parse(text);
    for (const auto& e : parsed.at("traceEvents").as_array())
        if (e.at("ph").as_string() == phase)
            found.push_back(e.as_object());
    return found;
}

TEST_SUITE_BEGIN("trace_json");

TEST_CASE("an empty trace is a valid file")
{
    CHECK(trace_json(empty_snapshot()) ==
          "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start\":\"2023-11-14T22:13:20Z\","
          "\"events\":0,\"lost\":0},\"traceEvents\":[\n]}\n");
}

TEST_CASE("request, batch and run are connected by arrows")
{
    trace_snapshot s = empty_snapshot();
    s.names = {"other", "GET /", "batch", "plan mlp", "context lost"};
    s.tracks = {"other", "server", "device 1"};
    s.texts = {{1, "fault: illegal address"}};
    auto parent = span(trace_kind::traceparent, {}, {});
    parent.id = 0xa;
    parent.parent = 0x00f067aa0ba902b7;
    parent.leads_to = 0x4bf92f3577b34da6;
    parent.value = 0xa3ce929d0e0e4736;
    auto request = span(trace_kind::request, microseconds(1), microseconds(9));
    request.id = 0xa;
    request.leads_to = 0xb;
    request.name = {1};
    request.track = {1};
    auto batch = span(trace_kind::batch, microseconds(2), microseconds(7));
    batch.id = 0xb;
    batch.value = 1;
    batch.name = {2};
    batch.track = {1};
    auto run = span(trace_kind::run, nanoseconds(4001), nanoseconds(2050));
    run.parent = 0xb;
    run.queued = nanoseconds(1500);
    run.value = 8192;
    run.name = {3};
    run.track = {2};
    run.outcome = trace_outcome::lost;
    auto fault = span(trace_kind::fault, microseconds(6), {});
    fault.name = {4};
    fault.track = {2};
    fault.text = 1;
    fault.outcome = trace_outcome::failed;
    s.events = {parent, request, batch, run, fault};
    s.added = 7;
    s.lost = 2;
    CHECK(trace_json(s) ==
          "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start\":\"2023-11-14T22:13:20Z\",\"events\":7,\"lost\":2},"
          "\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"pid\":2,\"tid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"server\"}},\n"
          "{\"ph\":\"M\",\"pid\":2,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"row 1\"}},\n"
          "{\"ph\":\"M\",\"pid\":2,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"row 2\"}},\n"
          "{\"ph\":\"M\",\"pid\":3,\"tid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"device 1\"}},\n"
          "{\"ph\":\"M\",\"pid\":3,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"row 1\"}},\n"
          "{\"ph\":\"X\",\"pid\":2,\"tid\":1,\"name\":\"GET /\",\"cat\":\"request\",\"ts\":1.000,\"dur\":9.000,"
          "\"args\":{\"outcome\":\"succeeded\",\"id\":\"000000000000000a\","
          "\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"parent_id\":\"00f067aa0ba902b7\"}},\n"
          "{\"ph\":\"X\",\"pid\":2,\"tid\":2,\"name\":\"batch\",\"cat\":\"batch\",\"ts\":2.000,\"dur\":7.000,"
          "\"args\":{\"outcome\":\"succeeded\",\"requests\":1,\"id\":\"000000000000000b\"}},\n"
          "{\"ph\":\"X\",\"pid\":3,\"tid\":1,\"name\":\"plan mlp\",\"cat\":\"run\",\"ts\":4.001,\"dur\":2.050,"
          "\"args\":{\"outcome\":\"lost\",\"queued_us\":1.500,\"bytes\":8192}},\n"
          "{\"ph\":\"i\",\"pid\":3,\"tid\":1,\"name\":\"context lost\",\"cat\":\"fault\",\"ts\":6.000,\"s\":\"p\","
          "\"args\":{\"outcome\":\"failed\",\"text\":\"fault: illegal address\"}},\n"
          "{\"ph\":\"s\",\"pid\":2,\"tid\":1,\"name\":\"flow\",\"cat\":\"flow\",\"id\":1,\"ts\":1.000},\n"
          "{\"ph\":\"f\",\"pid\":2,\"tid\":2,\"name\":\"flow\",\"cat\":\"flow\",\"id\":1,\"ts\":2.000,\"bp\":\"e\"},\n"
          "{\"ph\":\"s\",\"pid\":2,\"tid\":2,\"name\":\"flow\",\"cat\":\"flow\",\"id\":2,\"ts\":2.000},\n"
          "{\"ph\":\"f\",\"pid\":3,\"tid\":1,\"name\":\"flow\",\"cat\":\"flow\",\"id\":2,\"ts\":4.001,\"bp\":\"e\"}\n"
          "]}\n");
}

TEST_CASE("an arrow from or to an event that was overwritten is left out")
{
    const auto b = trace_buffer::create(2);
    auto request = span(trace_kind::request, {}, microseconds(1));
    request.id = b->new_id();
    request.leads_to = b->new_id();
    auto batch = span(trace_kind::batch, {}, microseconds(1));
    batch.id = request.leads_to;
    auto run = span(trace_kind::run, {}, microseconds(1));
    run.parent = batch.id;

    b->add(request);
    CHECK(events_of(trace_json(*b), "s").empty());
    b->add(batch);
    CHECK(events_of(trace_json(*b), "s").size() == 1);
    // It overwrites the request, so only the arrow to the run is left.
    b->add(run);
    const auto text = trace_json(*b);
    CHECK(events_of(text, "X").size() == 2);
    REQUIRE(events_of(text, "s").size() == 1);
    CHECK(events_of(text, "f").front().at("id") == events_of(text, "s").front().at("id"));
    b->add(run);
    CHECK(events_of(trace_json(*b), "s").empty());
    CHECK(events_of(trace_json(*b), "f").empty());
}

TEST_CASE("names with odd characters give valid JSON")
{
    std::string every;
    for (int c = 1; c < 128; ++c)
        every += static_cast<char>(c);
    const std::string good = every + "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    const std::string_view bad[] = {"\xff", "\xc3", "a\x80z", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\xaf"};
    trace_snapshot s = empty_snapshot();
    s.names = {good};
    s.tracks = {"\"track\"\n"};
    s.texts = {{1, std::string("zero\0byte", 9)}};
    for (const auto b : bad)
        s.names.emplace_back(b);
    for (std::size_t i = 0; i < s.names.size(); ++i) {
        auto e = span(trace_kind::span, microseconds(i), microseconds(1));
        e.name = {static_cast<std::uint16_t>(i)};
        e.text = 1;
        s.events.push_back(e);
    }
    const auto text = trace_json(s);
    const auto spans = events_of(text, "X");
    REQUIRE(spans.size() == s.names.size());
    CHECK(spans[0].at("name").as_string() == good);
    CHECK(spans[0].at("args").at("text").as_string() == std::string_view("zero\0byte", 9));
    for (std::size_t i = 1; i < spans.size(); ++i)
        CHECK(std::string_view(spans[i].at("name").as_string()).find("\xef\xbf\xbd") != std::string_view::npos);
    CHECK(events_of(text, "M").front().at("args").at("name").as_string() == "\"track\"\n");
}

TEST_CASE("names, tracks and kinds that do not exist do no harm")
{
    trace_snapshot s = empty_snapshot();
    auto e = span(trace_kind(77), microseconds(-5), microseconds(-1));
    e.name = {9};
    e.track = {65535};
    e.text = 9;
    e.outcome = trace_outcome(88);
    e.parent = e.leads_to = e.id = 3;
    s.events = {e, span(trace_kind::op, {}, microseconds(1))};
    const auto spans = events_of(trace_json(s), "X");
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].at("name").as_string() == "other");
    CHECK(spans[0].at("cat").as_string() == "unknown");
    CHECK(spans[0].at("dur").as_double() == 0);
    // Times begin with the earliest event, because viewers reject negative ones.
    CHECK(spans[0].at("ts").as_double() == 0);
    CHECK(spans[1].at("ts").as_double() == 5);
}

TEST_CASE("the time without a context is a span, the first context is an instant")
{
    trace_snapshot s = empty_snapshot();
    auto first = span(trace_kind::restart, {}, {});
    first.value = 1;
    auto second = span(trace_kind::restart, microseconds(5), microseconds(20));
    second.value = 2;
    s.events = {first, second};
    const auto text = trace_json(s);
    REQUIRE(events_of(text, "i").size() == 1);
    CHECK(events_of(text, "i").front().at("args").at("generation") == 1);
    REQUIRE(events_of(text, "X").size() == 1);
    CHECK(events_of(text, "X").front().at("args").at("generation") == 2);
}

TEST_CASE("the buffer can be read while threads write to it")
{
    const auto b = trace_buffer::create(64);
    std::atomic<bool> stop{false};
    std::atomic<int> running{0};
    std::vector<std::thread> writers;
    for (int t = 0; t < 2; ++t)
        writers.emplace_back([&] {
            ++running;
            for (int i = 0; !stop; ++i) {
                trace_event e;
                e.begin = trace_event::clock::now();
                e.duration = nanoseconds(i);
                e.id = b->new_id();
                e.name = b->intern("name " + std::to_string(i % 100));
                e.text = b->add_text("text");
                b->add(e);
            }
        });
    while (running < 2 || b->lost() == 0)
        std::this_thread::yield();
    for (int i = 0; i < 50; ++i)
        CHECK_NOTHROW((void)json::parse(trace_json(*b)));
    stop = true;
    for (auto& w : writers)
        w.join();
    // A place stays empty if its writer was interrupted, and overtaken by a whole round of the other.
    const auto left = events_of(trace_json(*b), "X").size();
    CHECK(left >= 62);
    CHECK(left <= 64);
}

TEST_CASE("a file is written as a whole, and errors name the path")
{
    const test::temporary_folder folder;
    const auto path = folder / "trace.json";
    const auto b = trace_buffer::create(4);
    b->add(span(trace_kind::op, {}, microseconds(1)));
    REQUIRE(telemetry::write_trace(*b, path));
    std::ifstream file(path);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    CHECK(content == trace_json(*b));

    const auto missing = folder / "no such folder/trace.json";
    const auto failed = telemetry::write_trace(*b, missing);
    REQUIRE_FALSE(failed);
    CHECK(failed.error() == errc::file_failed);
    CHECK(failed.error().message().find(missing) != std::string::npos);
}

TEST_SUITE_END();

} // namespace
} // namespace test_telemetry_trace_json
