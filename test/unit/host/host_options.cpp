#include <coaccel/host/host_options.hpp>

#include <doctest/doctest.h>

#include <deque>

namespace test_host_host_options {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;

template <class Change>
host_options changed(Change change)
{
    host_options o;
    change(o);
    return o;
}

fault_injector* injector(std::chrono::nanoseconds delay, std::uint64_t hang_at)
{
    // They live until the end of the program, because options only point at them.
    static std::deque<fault_injector> all;
    host_faults plan;
    plan.delay = delay;
    plan.hang_at = hang_at;
    return &all.emplace_back(plan);
}

} // namespace

TEST_SUITE_BEGIN("host_options");

TEST_CASE("options that are out of range, or would block the caller, are refused")
{
    using o = host_options;
    constexpr auto inline_ = host_mode::inline_;
    struct row {
        const char* name;
        host_options options;
        bool fits;
    };
    const row rows[] = {
        {"defaults", {}, true},
        {"inline", changed([](o& h) { h.mode = inline_; }), true},
        {"no such mode", changed([](o& h) { h.mode = static_cast<host_mode>(2); }), false},
        {"one thread", changed([](o& h) { h.threads = 1; }), true},
        {"the most threads", changed([](o& h) { h.threads = 1024; }), true},
        {"too many threads", changed([](o& h) { h.threads = 1025; }), false},
        {"negative threads", changed([](o& h) { h.threads = -1; }), false},
        {"tiny memory", changed([](o& h) { h.memory_limit = 1; }), true},
        {"absurd memory", changed([](o& h) { h.memory_limit = ~std::uint64_t(0); }), true},
        {"delay", changed([](o& h) { h.faults.delay = 1s; }), true},
        {"negative delay", changed([](o& h) { h.faults.delay = -1ns; }), false},
        {"poison inline", changed([](o& h) {
             h.mode = inline_;
             h.faults.poison_at = 3;
         }),
         true},
        {"delay inline", changed([](o& h) {
             h.mode = inline_;
             h.faults.delay = 1ns;
         }),
         false},
        {"hang inline", changed([](o& h) {
             h.mode = inline_;
             h.faults.hang_at = 1;
         }),
         false},
        {"injector", changed([](o& h) { h.injector = injector(1s, 5); }), true},
        {"harmless injector inline", changed([](o& h) {
             h.mode = inline_;
             h.injector = injector(0s, 0);
         }),
         true},
        {"injector that delays inline", changed([](o& h) {
             h.mode = inline_;
             h.injector = injector(1ns, 0);
         }),
         false},
        {"injector that hangs inline", changed([](o& h) {
             h.mode = inline_;
             h.injector = injector(0s, 1);
         }),
         false},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        CHECK(errc_of(r.options.check()) == (r.fits ? errc{} : errc::invalid_option));
    }
}

TEST_SUITE_END();

} // namespace test_host_host_options
