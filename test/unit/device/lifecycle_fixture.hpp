#ifndef COACCEL_TEST_UNIT_DEVICE_LIFECYCLE_FIXTURE_HPP
#define COACCEL_TEST_UNIT_DEVICE_LIFECYCLE_FIXTURE_HPP

#include "device/lifecycle.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace test::lifecycles {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::lifecycle;
using command = lifecycle::command;

inline const error_code dead = errc::context_lost;
inline const error_code refused = errc::start_failed;
inline const error_code gone = errc::device_lost;

struct machine : lifecycle {
    explicit machine(restart_policy p = policy()) : lifecycle(p) {}

    static restart_policy policy()
    {
        restart_policy p;
        p.max_restarts = 2;
        p.window = 60s;
        p.initial_backoff = 100ms;
        p.jitter = 0;
        return p;
    }

    void to_ready()
    {
        REQUIRE(start().what == command::create);
        created();
    }

    lifecycle::time_point t{};
};

} // namespace test::lifecycles

#endif
