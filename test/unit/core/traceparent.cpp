#include <coaccel/core/error.hpp>
#include <coaccel/core/traceparent.hpp>

#include <doctest/doctest.h>

#include <string>

namespace test_core_traceparent {
namespace {

using namespace coaccel;

const std::string sample = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::string with(std::size_t at, std::string_view text)
{
    std::string changed = sample;
    return changed.replace(at, text.size(), text);
}

TEST_SUITE_BEGIN("traceparent");

TEST_CASE("a header is read and written unchanged")
{
    const auto t = parse_traceparent(sample);
    REQUIRE(t);
    CHECK(t.value().trace_id.front() == 0x4b);
    CHECK(t.value().trace_id.back() == 0x36);
    CHECK(t.value().parent_id == 0x00f067aa0ba902b7);
    CHECK(t.value().flags == 1);
    CHECK(to_string(t.value()) == sample);
}

TEST_CASE("unknown flags are neither kept nor passed on")
{
    CHECK(parse_traceparent(with(53, "ff")).value().flags == 3);
    CHECK(parse_traceparent(with(53, "fc")).value().flags == 0);
    traceparent t = parse_traceparent(sample).value();
    t.flags = 0xfd;
    CHECK(to_string(t) == sample);
}

TEST_CASE("of a later version, what version 00 defines is read")
{
    const auto expected = parse_traceparent(sample).value();
    CHECK(parse_traceparent(with(0, "01")).value() == expected);
    CHECK(parse_traceparent(with(0, "fe") + "-what the future brings").value() == expected);
    CHECK(to_string(parse_traceparent(with(0, "cc") + "-").value()) == sample);
}

TEST_CASE("everything else is refused, with the place of the error")
{
    struct row {
        std::string text;
        std::string_view part;
    };
    const row rows[] = {
        {"", "has 0 characters"},
        {sample.substr(0, sample.size() - 1), "has 54 characters"},
        {sample + "-", "has 56 characters"},
        {sample + " ", "has 56 characters"},
        {with(0, "01") + "x", "character 55 is not '-'"},
        {with(0, "ff"), "the version is ff"},
        {with(0, "0x"), "the version has characters"},
        {with(0, "CC"), "the version has characters"},
        {with(2, "_"), "character 2 is not '-'"},
        {with(35, "0"), "character 35 is not '-'"},
        {with(52, " "), "character 52 is not '-'"},
        {with(3, "4BF9"), "the trace id has characters"},
        {with(34, "g"), "the trace id has characters"},
        {with(36, "+0"), "the parent id has characters"},
        {with(51, " "), "the parent id has characters"},
        {with(53, "0-"), "the flags has characters"},
        {with(3, std::string(32, '0')), "the trace id is zero"},
        {with(36, std::string(16, '0')), "the parent id is zero"},
        {with(40, std::string_view("\0", 1)), "the parent id has characters"},
    };
    for (const row& r : rows) {
        CAPTURE(r.text);
        const auto t = parse_traceparent(r.text);
        REQUIRE_FALSE(t);
        CHECK(t.error() == errc::invalid_argument);
        CHECK(t.error().message().find(r.part) != std::string::npos);
    }
}

TEST_SUITE_END();

} // namespace
} // namespace test_core_traceparent
