#include <coaccel/core/context_options.hpp>

#include <doctest/doctest.h>

namespace test_core_context_options {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;

struct row {
    const char* name;
    context_options options;
    bool fits;
};

} // namespace

TEST_SUITE_BEGIN("context_options");

TEST_CASE("options out of range are refused")
{
    const row rows[] = {
        {"defaults", {}, true},
        {"single", {.lanes = lane_policy::single()}, true},
        {"per library", {.lanes = lane_policy::per_library()}, true},
        {"one pooled", {.lanes = lane_policy::pooled(1)}, true},
        {"the most pooled", {.lanes = lane_policy::pooled(lane_policy::max_pooled)}, true},
        {"none pooled", {.lanes = lane_policy::pooled(0)}, false},
        {"negative pooled", {.lanes = lane_policy::pooled(-1)}, false},
        {"too many pooled", {.lanes = lane_policy::pooled(lane_policy::max_pooled + 1)}, false},
        {"one chained", {.lanes = lane_policy::chained(1)}, true},
        {"the most chained", {.lanes = lane_policy::chained(lane_policy::max_pooled)}, true},
        {"none chained", {.lanes = lane_policy::chained(0)}, false},
        {"too many chained", {.lanes = lane_policy::chained(lane_policy::max_pooled + 1)}, false},
        {"no such policy", {.lanes = {static_cast<lane_policy::kind>(4), 1}}, false},
        {"adaptive", {.lanes = {}, .completion = completion::adaptive}, true},
        {"host_fn", {.lanes = {}, .completion = completion::host_fn}, true},
        {"polled", {.lanes = {}, .completion = completion::polled}, true},
        {"sync", {.lanes = {}, .completion = completion::sync}, true},
        {"no such completion", {.lanes = {}, .completion = static_cast<completion>(4)}, false},
        {"no spinning", {.lanes = {}, .spin_budget = 0ns}, true},
        {"negative spinning", {.lanes = {}, .spin_budget = -1ns}, false},
        {"quick monitor", {.lanes = {}, .monitor_interval = 1ns}, true},
        {"no monitor", {.lanes = {}, .monitor_interval = 0ns}, false},
        {"negative monitor", {.lanes = {}, .monitor_interval = -1ms}, false},
        {"hang timeout", {.lanes = {}, .hang_timeout = 1s}, true},
        {"negative hang timeout", {.lanes = {}, .hang_timeout = -1ns}, false},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        CHECK(errc_of(r.options.check()) == (r.fits ? errc{} : errc::invalid_option));
    }
}

TEST_SUITE_END();

} // namespace test_core_context_options
