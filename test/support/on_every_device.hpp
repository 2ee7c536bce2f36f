#ifndef COACCEL_TEST_SUPPORT_ON_EVERY_DEVICE_HPP
#define COACCEL_TEST_SUPPORT_ON_EVERY_DEVICE_HPP

#include "support/dense.hpp"
#include "support/device_fixture.hpp"

#include <coaccel/core/op_list.hpp>

#include <string>
#include <utility>

namespace test {

/// Runs an op as a list of one op. A request for each type of op takes long to compile; all lists have the same one.
template <class Op>
coaccel::result<coaccel::op_replies> exec_listed(device_fixture& f, const Op& op)
{
    coaccel::op_list ops;
    ops.add(op);
    return await(f.io, f.gpu.async_exec(std::move(ops)));
}

/// Whether an op was refused because the GPU cannot multiply fp8.
inline bool lacks_fp8(const coaccel::error_code& ec)
{
    return ec == coaccel::errc::unsupported_op && ec.message().find("fp8 needs 8.9") != std::string::npos;
}

/// Calls `body(fixture, random)` for each device under test. A failure reports the seed and the kind of the device.
template <class Body>
void on_every_device(Body body)
{
    const auto seed = fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto& options : devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        body(f, random);
    }
}

} // namespace test

#endif
