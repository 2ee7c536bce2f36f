#include <coaccel/telemetry/exposition.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace test_telemetry_exposition {

namespace {

using namespace coaccel::telemetry;

constexpr double infinity = std::numeric_limits<double>::infinity();

snapshot one(metric_family family)
{
    snapshot s;
    s.families.push_back(std::move(family));
    return s;
}

/// One of each kind, with odd characters.
snapshot every_kind()
{
    const histogram sizes(histogram_options::sizes(4));
    for (const int n : {1, 2, 2, 3, 9})
        sizes.observe(n);
    summary_snapshot times;
    times.quantiles = {{0.5, 0.001}, {0.99, 0.25}};
    times.count = 7;
    times.sum = 1.5;
    snapshot s;
    s.families = {
        {"batch_size", "Sizes.", metric_type::histogram, {{{{"b", "x"}}, sizes.snapshot()}}},
        {"moved_bytes_total", "Bytes \\ moved.\nAll \"of\" them.", metric_type::counter, {{{}, 1e6}}},
        {"temperature",
         "",
         metric_type::gauge,
         {{{{"where", "a\"b\\c\nd\t\xc3\xa9"}, {"n", ""}}, -1.5}, {{{"where", "b"}}, 1e-300}}},
        {"time_seconds", "Times.", metric_type::summary, {{{}, times}}},
    };
    return s;
}

TEST_SUITE_BEGIN("exposition");

TEST_CASE("the text format of Prometheus")
{
    CHECK(to_text(every_kind()) == R"(# HELP batch_size Sizes.
# TYPE batch_size histogram
batch_size_bucket{b="x",le="1"} 1
batch_size_bucket{b="x",le="2"} 3
batch_size_bucket{b="x",le="4"} 4
batch_size_bucket{b="x",le="+Inf"} 5
batch_size_sum{b="x"} 17
batch_size_count{b="x"} 5
# HELP moved_bytes_total Bytes \\ moved.\nAll "of" them.
# TYPE moved_bytes_total counter
moved_bytes_total 1000000
# HELP temperature 
# TYPE temperature gauge
temperature{where="a\"b\\c\nd	é",n=""} -1.5
temperature{where="b"} 1e-300
# HELP time_seconds Times.
# TYPE time_seconds summary
time_seconds{quantile="0.5"} 0.001
time_seconds{quantile="0.99"} 0.25
time_seconds_sum 1.5
time_seconds_count 7
)");
}

TEST_CASE("OpenMetrics")
{
    CHECK(to_text(every_kind(), text_format::openmetrics) == R"(# TYPE batch_size histogram
# HELP batch_size Sizes.
batch_size_bucket{b="x",le="1.0"} 1
batch_size_bucket{b="x",le="2.0"} 3
batch_size_bucket{b="x",le="4.0"} 4
batch_size_bucket{b="x",le="+Inf"} 5
batch_size_sum{b="x"} 17
batch_size_count{b="x"} 5
# TYPE moved_bytes counter
# UNIT moved_bytes bytes
# HELP moved_bytes Bytes \\ moved.\nAll \"of\" them.
moved_bytes_total 1000000
# TYPE temperature gauge
# HELP temperature 
temperature{where="a\"b\\c\nd	é",n=""} -1.5
temperature{where="b"} 1e-300
# TYPE time_seconds summary
# UNIT time_seconds seconds
# HELP time_seconds Times.
time_seconds{quantile="0.5"} 0.001
time_seconds{quantile="0.99"} 0.25
time_seconds_sum 1.5
time_seconds_count 7
# EOF
)");
}

TEST_CASE("an empty snapshot")
{
    CHECK(to_text({}) == "");
    CHECK(to_text({}, text_format::openmetrics) == "# EOF\n");
}

TEST_CASE("numbers keep their value")
{
    struct {
        double value;
        std::string text;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-17, "-17"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {9007199254740991, "9007199254740991"},
        {1e22, "1e+22"},
        {infinity, "+Inf"},
        {-infinity, "-Inf"},
        {std::numeric_limits<double>::quiet_NaN(), "NaN"},
    };
    for (const auto& c : cases)
        CHECK(to_text(one({"x", "", metric_type::gauge, {{{}, c.value}}})) ==
              "# HELP x \n# TYPE x gauge\nx " + c.text + "\n");
}

TEST_CASE("a histogram without values has its buckets")
{
    const histogram empty(histogram_options::sizes(1));
    CHECK(to_text(one({"x", "", metric_type::histogram, {{{}, empty.snapshot()}}})) ==
          "# HELP x \n# TYPE x histogram\nx_bucket{le=\"1\"} 0\nx_bucket{le=\"+Inf\"} 0\nx_sum 0\nx_count 0\n");
}

TEST_CASE("a unit is part of a longer name")
{
    const auto text = to_text(one({"seconds", "", metric_type::gauge, {}}), text_format::openmetrics);
    CHECK(text.find("UNIT") == std::string::npos);
    const auto other = to_text(one({"milliseconds", "", metric_type::gauge, {}}), text_format::openmetrics);
    CHECK(other.find("UNIT") == std::string::npos);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_exposition
