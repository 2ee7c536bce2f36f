#include "cuda/op_table.hpp"

#include "support/every_op.hpp"

#include <coaccel/core/tune.hpp>
#include <coaccel/ops/interop.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/plugin.hpp>

#include <doctest/doctest.h>

namespace test_cuda_op_table {

namespace {

using namespace coaccel;

// Not in the template below, which is compiled for hundreds of ops.
void check_row(const op_info& info)
{
    CAPTURE(info.name);
    CHECK(cuda::all_ops().find(info.id) != nullptr);
}

void check_tune(const op_info& info)
{
    CAPTURE(info.name);
    check_row(info);
    CHECK(info.obstacle == capture_obstacle::host_work);
    CHECK(info.reply_size == sizeof(tuning));
}

} // namespace

TEST_SUITE_BEGIN("cuda op_table");

TEST_CASE("every op of the library has a row")
{
    int tunable = 0;
    test::for_each_op([&tunable]<class Op>() {
        check_row(info_of<Op>());
        if constexpr (tunable_op<Op>) {
            check_tune(info_of<tune<Op>>());
            ++tunable;
        }
    });
    CHECK(tunable > 10);
}

TEST_CASE("ops with handles of this process have a row but no description, so that no worker runs them")
{
    for (const auto id :
         {info_of<interop::wait_event<float>>().id, info_of<interop::record_event<coaccel::half>>().id}) {
        REQUIRE(cuda::all_ops().find(id) != nullptr);
        CHECK(cuda::all_ops().describe(id) == nullptr);
    }
}

TEST_CASE("every op can be launched")
{
    std::size_t count = 0;
    cuda::all_ops().for_each([&](const op_info& info) {
        CAPTURE(info.name);
        const auto* code = cuda::all_ops().find(info.id);
        CHECK(bool(code->prepare || code->enqueue));
        // Only a launch that neither prepares anything nor waits can be part of a graph.
        CHECK(bool(code->enqueue || info.obstacle != capture_obstacle::none));
        CHECK(cuda::all_ops().describe(info.id) == &info);
        ++count;
    });
    CHECK(count > 100);
    CHECK(cuda::all_ops().describe(jit::launch_op_id) == nullptr);
    CHECK(cuda::all_ops().find(1) == nullptr);
}

TEST_SUITE_END();

} // namespace test_cuda_op_table
