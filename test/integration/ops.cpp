#include "isolated.hpp"
#include "support/device_fixture.hpp"

namespace test_integration_ops {

// Runs the test cases of the ops on a device in a worker process.
namespace {

std::vector<coaccel::device_options> workers()
{
    return {test::isolated_options()};
}

[[maybe_unused]] const bool chosen = (test::devices_under_test = &workers, true);

} // namespace

} // namespace test_integration_ops
