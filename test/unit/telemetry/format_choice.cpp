#include <coaccel/telemetry/exposition.hpp>

#include <doctest/doctest.h>

#include <string>

namespace test_telemetry_format_choice {

namespace {

using namespace coaccel::telemetry;

constexpr auto plain = text_format::prometheus;
constexpr auto open = text_format::openmetrics;

struct choice {
    const char* accept;
    text_format chosen;
};

void check(const choice& c)
{
    CAPTURE(c.accept);
    CHECK(choose_format(c.accept) == c.chosen);
}

TEST_SUITE_BEGIN("choose_format");

TEST_CASE("versions of Prometheus get what they prefer")
{
    const choice cases[] = {
        // 2.4 and earlier.
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
         "text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
         plain},
        // 2.5 to 2.34.
        {"application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", open},
        // 2.35 and later.
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         open},
        // With native histograms: there is no protobuf here, so the next one.
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
         "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         open},
        // 3.0 and later.
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
         "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         open},
        // Configured to prefer its own format.
        {"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,"
         "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.3",
         plain},
    };
    for (const auto& c : cases)
        check(c);
}

TEST_CASE("other programs")
{
    const choice cases[] = {
        {"", plain},
        {"*/*", plain},
        // A browser.
        {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", plain},
        {"application/json", plain},
        {"text/plain", plain},
        {"application/openmetrics-text", open},
        {"application/openmetrics-text, */*", open},
        {"application/*", plain},
    };
    for (const auto& c : cases)
        check(c);
}

TEST_CASE("an unknown version is as if it were not named")
{
    const choice cases[] = {
        {"application/openmetrics-text;version=2.0.0", plain},
        {"application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;q=0.2", open},
        {"application/openmetrics-text;version=2.0.0,text/plain;version=0.0.4;q=0.1", plain},
        {"application/openmetrics-text;version=1.0.0;q=0.3,text/plain;version=1.0.0", open},
        {"application/openmetrics-text;version=\"1.0.0\"", open},
        {"application/openmetrics-text;version=", open},
    };
    for (const auto& c : cases)
        check(c);
}

TEST_CASE("the most specific range decides about the weight")
{
    const choice cases[] = {
        {"application/openmetrics-text;q=0.1, text/plain;q=0.5", plain},
        {"application/openmetrics-text;q=0.5, text/plain;q=0.5", open},
        {"application/openmetrics-text;q=0.5, text/plain;q=0.2, */*", open},
        {"application/openmetrics-text;q=0.5, text/*;q=0.2, */*", open},
        {"application/openmetrics-text;q=0.5, */*;q=0.9", plain},
        {"*/*;q=0.9, application/openmetrics-text;q=0.5, text/plain;q=0", open},
        {"application/openmetrics-text;q=0", plain},
        {"application/openmetrics-text;q=0.000, */*", plain},
        {"application/openmetrics-text;q=0.2, application/openmetrics-text;q=0.9, text/plain;q=0.5", open},
    };
    for (const auto& c : cases)
        check(c);
}

TEST_CASE("case, spaces and malformed fields")
{
    const choice cases[] = {
        {"Application/OpenMetrics-Text; Version=1.0.0", open},
        {" \tapplication/openmetrics-text \t;\tQ = 0.4 , text/plain ; q=0.3 ", open},
        {"application/openmetrics-text;q=nonsense", open},
        {"application/openmetrics-text;q=nan,text/plain;q=1", open},
        {"application/openmetrics-text;q=-1,text/plain;q=0.5", open},
        {"application/openmetrics-text;q=7,text/plain;q=1", open},
        {"application/openmetrics-text;x=\"a,b;q=0\",text/plain;q=0.5", open},
        {"text/plain;x=\"application/openmetrics-text,application/openmetrics-text\"", plain},
        {",,;;=,q=,", plain},
        {"\"", plain},
        {"application/openmetrics-text;x=\"", open},
    };
    for (const auto& c : cases)
        check(c);
    std::string longest(100000, ',');
    longest += "application/openmetrics-text";
    CHECK(choose_format(longest) == open);
}

TEST_CASE("the media type of a reply")
{
    CHECK(content_type(plain) == "text/plain; version=0.0.4; charset=utf-8");
    CHECK(content_type(open) == "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_format_choice
