#include "cuda/blas/blas_handle.hpp"

#include "blas_fixture.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/driver/error.hpp"
#include "support/start_op.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <thread>
#include <vector>

namespace test_cuda_blas_handle {

namespace {

using namespace coaccel;
using limits = std::numeric_limits<std::int64_t>;

using fixture = test::blas_fixture;
using scal = blas::scal<float>;

} // namespace

TEST_SUITE_BEGIN("blas_handle");

TEST_CASE("another thread creates the handle, with the settings of the options")
{
    for (const auto mode : {blas_mode::deterministic, blas_mode::fast}) {
        cuda_options how;
        how.blas = mode;
        how.blas_workspace = 1 << 20;
        fixture f(how);
        const auto x = f.upload<float>({1, 2, 3});
        REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
        CHECK(f.look(x) == std::vector<float>{2, 4, 6});
        REQUIRE(f.blas.calls("create").size() == 1);
        CHECK(f.blas.calls("create")[0].thread != std::this_thread::get_id());
        const auto& h = f.blas.last();
        CHECK(h.workspace != nullptr);
        CHECK(reinterpret_cast<std::uintptr_t>(h.workspace) % 256 == 0);
        CHECK(h.workspace_bytes == 1 << 20);
        CHECK(h.pointers == CUBLAS_POINTER_MODE_HOST);
        CHECK(h.atomics == (mode == blas_mode::fast ? CUBLAS_ATOMICS_ALLOWED : CUBLAS_ATOMICS_NOT_ALLOWED));
        CHECK((h.math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) != 0);
        REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
        CHECK(f.blas.calls("create").size() == 1);
    }
}

TEST_CASE("another thread makes the first call of a kind, and the caller makes later calls")
{
    fixture f;
    const auto x = f.upload(std::vector<float>(300, 1));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 2, .alpha = 2}));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 300, .alpha = 2}));
    const auto calls = f.blas.calls("scal");
    REQUIRE(calls.size() == 3);
    CHECK(calls[0].thread != std::this_thread::get_id());
    CHECK(calls[1].thread == std::this_thread::get_id());
    CHECK(calls[2].thread != std::this_thread::get_id());
    CHECK(f.look(x)[0] == 8);
    CHECK(f.look(x)[2] == 4);
}

TEST_CASE("a failed creation of a handle fails one op")
{
    for (const char* step :
         {"create", "set_stream", "set_workspace", "set_pointer_mode", "set_atomics_mode", "set_math_mode"}) {
        CAPTURE(step);
        fixture f;
        const auto x = f.upload<float>({1});
        f.blas.fail(step, CUBLAS_STATUS_ARCH_MISMATCH);
        CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == cuda::make_error(CUBLAS_STATUS_ARCH_MISMATCH));
        CHECK(f.blas.alive() == 0);
        CHECK_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2}));
        CHECK(f.look(x) == std::vector<float>{2});
    }
}

TEST_CASE("a failed allocation of a workspace fails one op")
{
    fixture f;
    const auto x = f.upload<float>({1});
    f.gpu.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, 1);
    f.gpu.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, 2);
    CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == errc::out_of_memory);
    CHECK_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2}));
}

TEST_CASE("a cuBLAS error fails its op, and a broken handle is replaced")
{
    struct row {
        cublasStatus_t status;
        std::size_t made;
    };
    constexpr row rows[] = {
        {CUBLAS_STATUS_NOT_INITIALIZED, 2}, {CUBLAS_STATUS_INTERNAL_ERROR, 2}, {CUBLAS_STATUS_EXECUTION_FAILED, 1},
        {CUBLAS_STATUS_INVALID_VALUE, 1},   {CUBLAS_STATUS_NOT_SUPPORTED, 1},
    };
    for (const auto& r : rows)
        for (const bool familiar : {false, true}) {
            CAPTURE(r.status);
            CAPTURE(familiar);
            fixture f;
            const auto x = f.upload<float>({1});
            if (familiar)
                REQUIRE_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 1}));
            f.blas.fail("scal", r.status);
            CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == cuda::make_error(r.status));
            CHECK(f.look(x) == std::vector<float>{1});
            CHECK_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2}));
            CHECK(f.look(x) == std::vector<float>{2});
            CHECK(f.blas.calls("create").size() == r.made);
            CHECK(f.blas.alive() == 1);
        }
}

TEST_CASE("an op on a dead context gets the context's error, and the handle is not destroyed")
{
    fixture f;
    const auto x = f.upload<float>({1});
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 1}));
    f.gpu.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
    f.blas.fail("scal", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == cuda::make_error(CUDA_ERROR_ILLEGAL_ADDRESS));
    CHECK(f.b->dead());
    f.b.reset();
    CHECK(f.blas.calls("destroy").empty());
}

TEST_CASE("a handle made for an op that is not enqueued again is destroyed")
{
    for (const bool broken : {false, true}) {
        CAPTURE(broken);
        fixture f;
        const auto x = f.upload<float>({1});
        const scal op{.x = x, .n = 1, .alpha = 2};
        if (broken) {
            f.blas.fail("scal", CUBLAS_STATUS_INTERNAL_ERROR);
            REQUIRE(f.run(op));
        }
        const auto made = f.blas.calls("create").size();
        const auto here = f.b->enter();
        bound_op o = f.bind(op);
        f.repeat_until_answered([&] {
            const bool ended = f.blas.calls("create").size() > made;
            if (!ended)
                CHECK_FALSE(test::try_start(*f.b, *f.lane, o).has_value());
            return ended ? std::optional(true) : std::nullopt;
        });
    }
}

TEST_CASE("a reduction replies and releases its pinned memory")
{
    fixture f;
    const auto x = f.upload<float>({1, 2, 3});
    const auto y = f.upload<float>({4, 5, 6});
    const auto used = f.memory();
    for (int i = 0; i < 3; ++i) {
        float product = 0;
        REQUIRE_FALSE(f.run(blas::dot<float>{.x = x, .y = y, .n = 3, .incy = -1}, &product));
        CHECK(product == 28);
    }
    f.blas.fail("dot", CUBLAS_STATUS_EXECUTION_FAILED);
    float product = 0;
    CHECK(f.run(blas::dot<float>{.x = x, .y = y, .n = 3}, &product) ==
          cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
    CHECK_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
    f.gpu.fail("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE);
    CHECK(f.run(blas::dot<float>{.x = x, .y = y, .n = 3}, &product) == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
    CHECK(f.memory().pinned_used == used.pinned_used);
}

TEST_CASE("iamax counts from zero in the vector's own direction, and releases its scratch memory")
{
    fixture f;
    const auto x = f.upload<float>({5, 1, -5, 2});
    std::uint64_t at = 99;
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 4}, &at));
    CHECK(at == 0);
    const auto used = f.memory().used;
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 4, .incx = -1}, &at));
    CHECK(at == 1);
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 2, .incx = -3}, &at));
    CHECK(at == 1);
    f.blas.fail("copy", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(blas::iamax<float>{.x = x, .n = 4, .incx = -1}, &at) ==
          cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
    CHECK(f.memory().used == used);
    f.gpu.fail_from("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(f.run(blas::iamax<float>{.x = x, .n = 4, .incx = -1}, &at) == errc::out_of_memory);
    f.gpu.forgive();
    CHECK(f.memory().used == used);
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 4}, &at));
    CHECK(at == 0);
}

TEST_CASE("irrelevant increments and leading dimensions are replaced by valid ones")
{
    fixture f;
    const auto x = f.upload<float>({1, 2, 3});
    const auto y = f.upload<float>({1, 2, 3});
    const auto z = f.upload<float>({1, 2, 3});
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2, .incx = -1}));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2, .incx = limits::min()}));
    CHECK(f.look(x) == std::vector<float>{4, 4, 6});
    REQUIRE_FALSE(f.run(blas::axpy<float>{.x = x, .y = y, .n = 1, .incx = limits::min(), .incy = limits::max()}));
    CHECK(f.blas.calls("axpy").at(0).incx == 1);
    REQUIRE_FALSE(f.run(blas::axpy<float>{.x = x, .y = y, .n = 3, .alpha = 0}));
    CHECK(f.blas.calls("axpy").size() == 1);
    const auto huge = std::numeric_limits<std::uint64_t>::max();
    using gemm = blas::gemm<float>;
    REQUIRE_FALSE(f.run(gemm{.a = x, .b = y, .c = z, .m = 3, .n = 1, .k = 1, .lda = huge, .ldb = huge, .ldc = huge}));
    const auto call = f.blas.calls("gemm").at(0);
    CHECK(call.ld[0] == 3);
    CHECK(call.ld[1] == 1);
    CHECK(call.ld[2] == 3);
}

TEST_CASE("TF32 is used only for f32 ops that request it")
{
    fixture f;
    const auto a = f.upload<float>({1}), b = f.upload<float>({1}), c = f.upload<float>({1});
    using gemm = blas::gemm<float>;
    REQUIRE_FALSE(f.run(gemm{.a = a, .b = b, .c = c, .m = 1, .n = 1, .k = 1}));
    REQUIRE_FALSE(f.run(gemm{.a = a, .b = b, .c = c, .m = 1, .n = 1, .k = 1, .math = blas::math::tf32}));
    const auto calls = f.blas.calls("gemm");
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].compute == CUBLAS_COMPUTE_32F);
    CHECK(calls[1].compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    const auto da = f.upload<double>({1}), db = f.upload<double>({1}), dc = f.upload<double>({1});
    REQUIRE_FALSE(
        f.run(blas::gemm<double>{.a = da, .b = db, .c = dc, .m = 1, .n = 1, .k = 1, .math = blas::math::tf32}));
    CHECK(f.blas.calls("gemm").at(2).compute == CUBLAS_COMPUTE_64F);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_handle
