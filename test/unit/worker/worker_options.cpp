#include <coaccel/worker/worker_options.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace test_worker_worker_options {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;

worker_options with(auto member, auto value)
{
    worker_options o;
    o.*member = value;
    return o;
}

} // namespace

TEST_SUITE_BEGIN("worker_options");

TEST_CASE("the defaults are in range")
{
    CHECK(worker_options().check() == error_code());
}

TEST_CASE("values just out of range are refused, and their neighbours in range are accepted")
{
    using o = worker_options;
    constexpr auto mebibyte = std::uint64_t(1) << 20;
    struct row {
        const char* name;
        o options;
        bool fits;
    };
    const std::vector<row> rows = {
        {"no staging", with(&o::staging_bytes, 0), false},
        {"little staging", with(&o::staging_bytes, mebibyte - 1), false},
        {"least staging", with(&o::staging_bytes, mebibyte), true},
        {"most staging", with(&o::staging_bytes, 65536 * mebibyte), true},
        {"much staging", with(&o::staging_bytes, 65536 * mebibyte + 1), false},
        {"absurd staging", with(&o::staging_bytes, std::numeric_limits<std::uint64_t>::max()), false},
        {"no time to start", with(&o::start_timeout, 0ns), false},
        {"negative time to start", with(&o::start_timeout, -1ns), false},
        {"little time to start", with(&o::start_timeout, 1ns), true},
        {"endless time to start", with(&o::start_timeout, std::chrono::nanoseconds::max()), true},
        {"no heartbeat", with(&o::heartbeat, 0ns), true},
        {"negative heartbeat", with(&o::heartbeat, -1ns), false},
        {"short heartbeat", with(&o::heartbeat, 50ms - 1ns), false},
        {"shortest heartbeat", with(&o::heartbeat, 50ms), true},
        {"endless heartbeat", with(&o::heartbeat, std::chrono::nanoseconds::max()), true},
        {"no spin", with(&o::spin, 0ns), true},
        {"negative spin", with(&o::spin, -1ns), false},
        {"longest spin", with(&o::spin, 1s), true},
        {"long spin", with(&o::spin, 1s + 1ns), false},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        CHECK(errc_of(r.options.check()) == (r.fits ? errc{} : errc::invalid_option));
    }
}

TEST_SUITE_END();

} // namespace test_worker_worker_options
