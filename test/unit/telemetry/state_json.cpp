#include "telemetry/json_writer.hpp"

#include <coaccel/telemetry/exposition.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace test_telemetry_state_json {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using detail::json_writer;

bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

TEST_SUITE_BEGIN("json_writer");

TEST_CASE("values are separated, and texts are escaped")
{
    std::string text;
    json_writer out(text);
    out.begin_object();
    out.member("a", 1.5);
    out.key("b");
    out.begin_array();
    out.begin_array();
    out.end_array();
    out.null();
    out.boolean(true);
    out.text("q\"\\\n\t\x01\xff/\xc3\xa9");
    out.number(std::numeric_limits<double>::quiet_NaN());
    out.number(-std::numeric_limits<double>::infinity());
    out.end_array();
    out.key("c");
    out.begin_object();
    out.end_object();
    out.end_object();
    CHECK(text ==
          "{\"a\":1.5,\"b\":[[],null,true,\"q\\\"\\\\\\n\\u0009\\u0001\xef\xbf\xbd/\xc3\xa9\",null,null],\"c\":{}}");
}

TEST_CASE("exact integers, times, hexadecimal digits and lines")
{
    std::string text;
    json_writer out(text);
    out.begin_array();
    out.new_line();
    out.integer(18446744073709551615u);
    out.microseconds(std::chrono::nanoseconds(1234567));
    out.microseconds(std::chrono::nanoseconds(-1));
    out.new_line();
    out.hexadecimal({1, 0xabcdef});
    out.end_array();
    CHECK(text == "[\n18446744073709551615,1234.567,-0.001,\n\"00000000000000010000000000abcdef\"]");
}

TEST_CASE("an empty snapshot")
{
    snapshot s;
    s.at = std::chrono::system_clock::time_point(std::chrono::milliseconds(1234));
    const std::string text = to_json(s);
    CHECK(text.starts_with("{\"version\":\"" COACCEL_VERSION_STRING "\",\"process\":\""));
    CHECK(text.ends_with("\",\"at_ms\":1234,\"devices\":[],\"metrics\":{}}"));
    // The same process.
    CHECK(to_json(s) == text);
}

TEST_CASE("devices, with and without statistics, and samples")
{
    snapshot s;
    device_stats stats;
    stats.state = device_state::busy;
    stats.completed = 12;
    stats.at = std::chrono::steady_clock::time_point(std::chrono::milliseconds(2500));
    stats.latencies.push_back({"memory.fill<f32>",
                               3,
                               std::chrono::microseconds(5),
                               {},
                               {},
                               {},
                               {},
                               {{std::chrono::nanoseconds(4608), 1}, {std::chrono::nanoseconds(5120), 2}}});
    plan_stats plan;
    plan.op = "plan encoder";
    plan.completed = 7;
    plan.bytes_to_host = 4096;
    stats.plans.push_back(plan);
    s.devices.push_back({"a\"b", {device_state::ready, 2, {}}, stats});
    s.devices.push_back({"c", {device_state::failed, 1, errc::device_lost}, std::nullopt});
    const histogram sizes(histogram_options::sizes());
    sizes.observe(3);
    s.families.push_back({"h", "Help.", metric_type::histogram, {{{{"x", "y"}}, sizes.snapshot()}}});
    s.families.push_back({"g", "", metric_type::gauge, {{{}, std::numeric_limits<double>::quiet_NaN()}}});
    const auto text = to_json(s);
    CHECK(contains(
        text, R"({"name":"a\"b","state":"ready","generation":2,"reason":"","stats":{"state":"busy","at_ms":2500,)"));
    CHECK(contains(text, R"("completed":12,)"));
    CHECK(contains(text, R"({"op":"memory.fill<f32>","count":3,"sum":0,"p50":5e-06,)"));
    CHECK(contains(text, R"("buckets":[[4.608e-06,1],[5.12e-06,2]]})"));
    CHECK(contains(text, R"("plans":[{"op":"plan encoder","completed":7,"failed":0,)"));
    CHECK(contains(text, R"("bytes_to_host":4096,)"));
    CHECK(contains(text, R"({"name":"c","state":"failed","generation":1,"reason":")" +
                             error_code(errc::device_lost).message() + R"(","stats":null})"));
    CHECK(contains(text, R"("h":{"type":"histogram","help":"Help.","samples":[{"labels":{"x":"y"},"value":)"
                         R"({"count":1,"sum":3,"p50":3,"p99":3,"buckets":[[3,1]]}}]})"));
    CHECK(contains(text, R"("g":{"type":"gauge","help":"","samples":[{"labels":{},"value":null}]})"));
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_state_json
