#include "telemetry/metric_names.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_telemetry_metric_names {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using telemetry::metric_type;

TEST_SUITE_BEGIN("metric_names");

TEST_CASE("valid names are accepted")
{
    for (const char* name : {"a", "_", ":", "requests", "A_b:c9", "x__y"}) {
        CAPTURE(name);
        CHECK_FALSE(check_metric_name(metric_type::gauge, name));
        CHECK_FALSE(check_metric_name(metric_type::counter, std::string(name) + "_total"));
    }
}

TEST_CASE("an error names the name, the character and its position")
{
    struct {
        std::string name;
        std::string message;
    } cases[] = {
        {"", "telemetry: the name of a metric is empty"},
        {"9a", "telemetry: the metric name \"9a\" has the character '9' at position 0"},
        {"a b", "telemetry: the metric name \"a b\" has the character ' ' at position 1"},
        {"a-b", "telemetry: the metric name \"a-b\" has the character '-' at position 1"},
        {"ab\n", "telemetry: the metric name \"ab\\x0a\" has the character '\\x0a' at position 2"},
        {"\xc3\xa4", "telemetry: the metric name \"\xc3\xa4\" has the character '\\xc3' at position 0"},
        {std::string("a\0b", 3), "telemetry: the metric name \"a\\x00b\" has the character '\\x00' at position 1"},
        {"a{", "telemetry: the metric name \"a{\" has the character '{' at position 1"},
        {"x_total", "telemetry: the gauge \"x_total\" has a name that ends with \"_total\", as only counters may"},
    };
    for (const auto& c : cases) {
        const error_code ec = check_metric_name(metric_type::gauge, c.name);
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == c.message);
    }
    CHECK(check_metric_name(metric_type::counter, "x").message() ==
          "telemetry: the counter \"x\" must have a name that ends with \"_total\"");
    CHECK(check_metric_name(metric_type::counter, "_total") == errc::invalid_argument);
}

TEST_CASE("labels are checked")
{
    CHECK_FALSE(check_labels(metric_type::gauge, "m", {{"a", "any\n\"text\\"}, {"_b1", ""}, {"le", "1"}}));
    struct {
        metric_type type;
        telemetry::labels with;
        std::string message;
    } cases[] = {
        {metric_type::gauge, {{"", "x"}}, "telemetry: a label of \"m\" has an empty name"},
        {metric_type::gauge, {{"a:b", "x"}}, "telemetry: the label name \"a:b\" has the character ':' at position 1"},
        {metric_type::gauge, {{"1", "x"}}, "telemetry: the label name \"1\" has the character '1' at position 0"},
        {metric_type::gauge,
         {{"__a", "x"}},
         "telemetry: the label \"__a\" of \"m\" begins with \"__\", which is reserved"},
        {metric_type::gauge, {{"a", "x"}, {"a", "y"}}, "telemetry: the label \"a\" of \"m\" is given twice"},
        {metric_type::histogram, {{"le", "1"}}, "telemetry: the label \"le\" is reserved in the histogram \"m\""},
        {metric_type::summary,
         {{"quantile", "1"}},
         "telemetry: the label \"quantile\" is reserved in the summary \"m\""},
    };
    for (const auto& c : cases) {
        const error_code ec = check_labels(c.type, "m", c.with);
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == c.message);
    }
}

TEST_CASE("text becomes valid UTF-8 without control characters")
{
    struct {
        std::string text;
        std::string clean;
    } cases[] = {
        {"", ""},
        {"plain \\ \" text\n\t", "plain \\ \" text\n\t"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {std::string("a\0b", 3), "a\xef\xbf\xbd"
                                 "b"},
        {"\x1b[31m\r\x7f", "\xef\xbf\xbd[31m\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xff", "\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc3x", "\xef\xbf\xbdx"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (const auto& c : cases)
        CHECK(clean_text(c.text) == c.clean);
}

TEST_CASE("the key of labels does not depend on their order and cannot be forged")
{
    CHECK(label_key({{"a", "1"}, {"b", "2"}}) == label_key({{"b", "2"}, {"a", "1"}}));
    CHECK(label_key({{"a", "1"}, {"b", "2"}}) != label_key({{"a", "1b2"}}));
    CHECK(label_key({{"a", ""}}) != label_key({}));
    CHECK(label_key({{"a", "1"}}) != label_key({{"a", "2"}}));
}

TEST_CASE("a name has one type and one help")
{
    metric_names names;
    CHECK_FALSE(names.claim(metric_type::gauge, "x", "help"));
    CHECK_FALSE(names.claim(metric_type::gauge, "x", "help"));
    CHECK(names.claim(metric_type::histogram, "x", "help").message() == "telemetry: \"x\" is a gauge, not a histogram");
    CHECK(names.claim(metric_type::gauge, "x", "other").message() ==
          "telemetry: \"x\" has the help \"help\", not \"other\"");
    CHECK_FALSE(names.claim(metric_type::gauge, "x", "help"));
}

TEST_CASE("families whose lines would have the same names are refused")
{
    struct {
        metric_type first_type;
        const char* first;
        metric_type second_type;
        const char* second;
    } cases[] = {
        {metric_type::histogram, "x", metric_type::gauge, "x_bucket"},
        {metric_type::histogram, "x", metric_type::gauge, "x_sum"},
        {metric_type::gauge, "x_count", metric_type::histogram, "x"},
        {metric_type::summary, "x", metric_type::gauge, "x_count"},
        {metric_type::counter, "x_total", metric_type::gauge, "x"},
        {metric_type::gauge, "x", metric_type::counter, "x_total"},
        {metric_type::counter, "x_total", metric_type::gauge, "x_created"},
    };
    for (const auto& c : cases) {
        metric_names names;
        CAPTURE(c.second);
        CHECK_FALSE(names.claim(c.first_type, c.first, ""));
        CHECK(names.claim(c.second_type, c.second, "") == errc::invalid_argument);
        CHECK_FALSE(names.claim(metric_type::gauge, "y", ""));
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_metric_names
