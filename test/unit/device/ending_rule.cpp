#include "device/ending_rule.hpp"

#include <doctest/doctest.h>

#include <iterator>

namespace test_device_ending_rule {

namespace {

using namespace coaccel::detail;
using asio_type = boost::asio::cancellation_type;

TEST_SUITE_BEGIN("ending_rule");

TEST_CASE("stage, reason and use of caller memory decide when a cancelled op completes")
{
    struct row {
        op_stage stage;
        ending why;
        answer with_memory;
        answer without;
    };
    using enum op_stage;
    const row rows[] = {
        {waiting, ending::total, answer::now, answer::now},
        {waiting, ending::partial, answer::now, answer::now},
        {waiting, ending::terminal, answer::now, answer::now},
        {waiting, ending::deadline, answer::now, answer::now},
        {started, ending::total, answer::as_it_ends, answer::as_it_ends},
        {started, ending::partial, answer::when_left, answer::now},
        {started, ending::terminal, answer::when_left, answer::now},
        {started, ending::deadline, answer::when_left, answer::now},
        // Only the first reason counts.
        {given_up, ending::total, answer::as_it_ends, answer::as_it_ends},
        {given_up, ending::partial, answer::as_it_ends, answer::as_it_ends},
        {given_up, ending::terminal, answer::as_it_ends, answer::as_it_ends},
        {given_up, ending::deadline, answer::as_it_ends, answer::as_it_ends},
    };
    CHECK(std::size(rows) == 3 * 4);
    for (const auto& r : rows) {
        CAPTURE(static_cast<int>(r.stage));
        CAPTURE(static_cast<int>(r.why));
        CHECK(static_cast<int>(when_to_answer(r.stage, r.why, true)) == static_cast<int>(r.with_memory));
        CHECK(static_cast<int>(when_to_answer(r.stage, r.why, false)) == static_cast<int>(r.without));
    }
}

TEST_CASE("of several cancellation types the one with the weakest guarantee counts")
{
    CHECK((ending_of(asio_type::total) == ending::total));
    CHECK((ending_of(asio_type::partial) == ending::partial));
    CHECK((ending_of(asio_type::terminal) == ending::terminal));
    CHECK((ending_of(asio_type::total | asio_type::partial) == ending::partial));
    CHECK((ending_of(asio_type::partial | asio_type::terminal) == ending::terminal));
    CHECK((ending_of(asio_type::all) == ending::terminal));
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_ending_rule
