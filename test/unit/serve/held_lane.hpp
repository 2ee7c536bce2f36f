#ifndef COACCEL_TEST_UNIT_SERVE_HELD_LANE_HPP
#define COACCEL_TEST_UNIT_SERVE_HELD_LANE_HPP

#include "batched_plans.hpp"
#include "support/gate.hpp"

namespace test {

/// Holds up the one lane of a device that has only one, so that batches stay in flight.
struct held_lane {
    explicit held_lane(batcher_fixture& f) : fixture(f)
    {
        block = f.alloc<float>(1);
        f.gpu.async_submit(coaccel::out(block), test::gate_op(&gate), [this](coaccel::error_code) { ended = true; });
        test::run_until(fixture.io, [this] { return gate.reached(1); });
    }

    ~held_lane() { open(); }

    void open()
    {
        gate.open();
        test::run_until(fixture.io, [this] { return ended; });
    }

    batcher_fixture& fixture;
    test::gate gate;
    coaccel::buffer<float> block;
    bool ended = false;
};

inline coaccel::device_options one_lane()
{
    auto o = test::device_fixture::on_host(test::device_fixture::with_mode(coaccel::host_mode::pool));
    o.host.threads = 1;
    o.context.lanes = coaccel::lane_policy::single();
    return o;
}

} // namespace test

#endif
