#include "telemetry/sample_set.hpp"

#include <coaccel/telemetry/metric_writer.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace test_telemetry_sample_set {

namespace {

using namespace coaccel::detail;
using namespace coaccel::telemetry;

TEST_SUITE_BEGIN("sample_set");

TEST_CASE("samples of one name are grouped, and families are sorted")
{
    sample_list list;
    metric_writer out(list);
    out.gauge("b", "two", {{"x", "1"}}, 1);
    out.counter("a_total", "one", {}, 2);
    out.gauge("b", "two", {{"x", "2"}}, 3);
    sample_set set;
    set.add(std::move(list));
    CHECK(set.dropped() == 0);
    const auto all = set.take();
    REQUIRE(all.size() == 2);
    CHECK(all[0].name == "a_total");
    CHECK(all[0].type == metric_type::counter);
    CHECK(all[1].name == "b");
    CHECK(all[1].help == "two");
    REQUIRE(all[1].samples.size() == 2);
    CHECK(std::get<double>(all[1].samples[1].value) == 3);
}

TEST_CASE("a value that is not valid is dropped and counted")
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto accepted = [](auto write) {
        sample_list list;
        metric_writer out(list);
        write(out);
        sample_set set;
        set.add(std::move(list));
        const bool kept = !set.take().empty();
        CHECK(set.dropped() == (kept ? 0 : 1));
        return kept;
    };
    const auto count = [&](double value) {
        return accepted([&](metric_writer& out) { out.counter("c_total", "", {}, value); });
    };
    CHECK(count(0));
    CHECK(count(1e300));
    for (const double value : {-1.0, nan, infinity, -infinity}) {
        CAPTURE(value);
        CHECK_FALSE(count(value));
        CHECK(accepted([&](metric_writer& out) { out.gauge("g", "", {}, value); }));
    }
    using buckets = std::vector<histogram_snapshot::bucket>;
    const auto fill = [&](std::vector<double> bounds, buckets b, std::uint64_t n) {
        return accepted([&](metric_writer& out) { out.histogram("h", "", {}, histogram_snapshot{b, bounds, n, 1}); });
    };
    CHECK(fill({}, {}, 0));
    CHECK(fill({-1, 0, 2}, {{-1, 1}, {2, 3}}, 4));
    CHECK(fill({1}, {{1, 1}, {infinity, 1}}, 3));
    CHECK_FALSE(fill({2, 1}, {}, 0));
    CHECK_FALSE(fill({1, 1}, {}, 0));
    CHECK_FALSE(fill({1, infinity}, {}, 0));
    CHECK_FALSE(fill({nan}, {}, 0));
    CHECK_FALSE(fill({1}, {{1, 1}, {2, 3}}, 3));
    CHECK_FALSE(fill({1}, {{1, ~std::uint64_t{0}}, {2, 3}}, 4));
    CHECK_FALSE(fill({1}, {{2, 1}, {1, 1}}, 2));
    CHECK_FALSE(fill({1}, {{1, 1}, {1, 1}}, 2));
    CHECK_FALSE(fill({1}, {{nan, 1}}, 1));
    const auto summarize = [&](std::vector<summary_snapshot::quantile> q) {
        return accepted([&](metric_writer& out) { out.summary("s", "", {}, summary_snapshot{q, 1, 1}); });
    };
    CHECK(summarize({}));
    CHECK(summarize({{0, 1}, {0.5, nan}, {1, infinity}}));
    CHECK_FALSE(summarize({{-0.1, 1}}));
    CHECK_FALSE(summarize({{1.1, 1}}));
    CHECK_FALSE(summarize({{nan, 1}}));
    CHECK_FALSE(summarize({{0.5, 1}, {0.5, 1}}));
    CHECK_FALSE(summarize({{0.9, 1}, {0.5, 1}}));
}

TEST_CASE("what cannot stand beside earlier samples is dropped and counted")
{
    sample_list list;
    metric_writer out(list);
    out.gauge("x", "help", {{"a", "1"}, {"b", "2"}}, 1);
    out.gauge("x", "help", {{"b", "2"}, {"a", "1"}}, 2); // the same labels
    out.gauge("x", "other help", {{"a", "3"}}, 3);
    out.summary("x", "help", {{"a", "4"}}, {});
    out.gauge("not valid", "", {}, 4);
    out.gauge("y", "", {{"not valid", ""}}, 5);
    out.counter("z", "no suffix", {}, 6);
    out.histogram("x_count", "", {}, histogram());
    out.gauge("x", "help", {{"a", "1"}}, 7); // other labels
    sample_set set;
    set.add(std::move(list));
    CHECK(set.dropped() == 6);
    const auto all = set.take();
    REQUIRE(all.size() == 2);
    REQUIRE(all[0].samples.size() == 2);
    CHECK(std::get<double>(all[0].samples[0].value) == 1);
    CHECK(std::get<double>(all[0].samples[1].value) == 7);
    CHECK(all[1].name == "x_count");
}

TEST_CASE("values that are equal after cleaning are equal")
{
    sample_set set;
    CHECK(set.add({metric_type::gauge, "x", "", {{{"a", "\xff"}}, 1.0}}));
    CHECK_FALSE(set.add({metric_type::gauge, "x", "", {{{"a", "\xfe"}}, 2.0}}));
    CHECK(set.dropped() == 1);
}

TEST_CASE("a value can be replaced")
{
    sample_set set;
    set.add({metric_type::counter, "x_total", "", {{}, 1.0}});
    set.replace("x_total", 5);
    set.replace("unknown", 5);
    CHECK(std::get<double>(set.take().at(0).samples.at(0).value) == 5);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_sample_set
