#include "cuda/op_table.hpp"

#include "support/every_op.hpp"

#include <coaccel/ops/interop.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/plugin.hpp>

#include <doctest/doctest.h>

namespace test_cuda_op_table {

namespace {

using namespace coaccel;

template <class Op>
bool capturable(const Op& op)
{
    const auto* code = cuda::all_ops().find(info_of<Op>().id);
    REQUIRE(code != nullptr);
    return code->capturable && code->capturable(&op);
}

// Not in the template below, which is compiled for hundreds of ops.
void check_row(const op_info& info)
{
    CAPTURE(info.name);
    CHECK(cuda::all_ops().find(info.id) != nullptr);
}

} // namespace

TEST_SUITE_BEGIN("cuda op_table");

TEST_CASE("every op of the library has a row")
{
    test::for_each_op([]<class Op>() { check_row(info_of<Op>()); });
}

TEST_CASE("ops with handles of this process have a row but no description, so that no worker runs them")
{
    for (const auto id :
         {info_of<interop::wait_event<float>>().id, info_of<interop::record_event<coaccel::half>>().id}) {
        REQUIRE(cuda::all_ops().find(id) != nullptr);
        CHECK(cuda::all_ops().describe(id) == nullptr);
        CHECK_FALSE(bool(cuda::all_ops().find(id)->capturable));
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
        CHECK(bool(!code->capturable || code->enqueue));
        CHECK(cuda::all_ops().describe(info.id) == &info);
        ++count;
    });
    CHECK(count > 100);
    CHECK(cuda::all_ops().describe(jit::launch_op_id) == nullptr);
    CHECK(cuda::all_ops().find(1) == nullptr);
}

TEST_CASE("an op can be part of a graph if its launch needs no memory of its own")
{
    CHECK(capturable(memory::fill<float>{}));
    CHECK(capturable(blas::gemm<float>{}));
    CHECK(capturable(blas::axpy<double>{}));
    CHECK(capturable(blas::trsm<std::complex<double>>{}));
    CHECK(capturable(blas::her2k<std::complex<float>>{}));
    CHECK(capturable(blas::rotg<float>{}));
    CHECK(capturable(blas::gemm_ex<std::int8_t>{}));
    CHECK(capturable(prim::unary<float>{}));
    CHECK(capturable(prim::softmax<coaccel::half>{}));
    CHECK(capturable(prim::reduce<float>{}));
    CHECK(capturable(prim::scatter<std::complex<float>>{}));
    CHECK(capturable(prim::sort<double>{}));
    // The reply goes to memory of this run.
    CHECK_FALSE(capturable(blas::iamin<double>{}));
    CHECK_FALSE(capturable(blas::dotc<std::complex<float>>{}));
    CHECK(capturable(stored_reply<blas::dotc<std::complex<float>>>{}));
    CHECK_FALSE(capturable(blas::dot<float>{}));
    CHECK(capturable(stored_reply<blas::dot<float>>{}));
    // A product with a factor of zero needs zeros.
    blas::gemm<coaccel::half> product;
    product.m = product.n = product.k = 1;
    CHECK(capturable(product));
    product.alpha = 0;
    CHECK_FALSE(capturable(product));
    blas::gemv_strided_batched<coaccel::half> batch;
    batch.m = batch.n = batch.batch = 1;
    CHECK(capturable(batch));
    batch.alpha = 0;
    CHECK_FALSE(capturable(batch));
    // Each run would draw the same numbers.
    CHECK_FALSE(capturable(rand::uniform<float>{}));
    CHECK_FALSE(capturable(memory::trim{}));
    CHECK(bool(cuda::all_ops().find(jit::launch_op_id)->capturable));
    CHECK_FALSE(bool(cuda::all_ops().find(plugin::call_op_id)->capturable));
}

TEST_SUITE_END();

} // namespace test_cuda_op_table
