#include "chosen_library.hpp"
#include "cuda/backend.hpp"
#include "cuda/blas/cublas_api.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/driver/error.hpp"
#include "cuda_world.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

namespace test_cuda_blas_faults {

namespace {

using namespace coaccel;
using test::context_driver;
using test::cuda_world;
using test::exec;
using test::fake_cuda;

} // namespace

TEST_SUITE_BEGIN("blas faults");

TEST_CASE("a cuBLAS error fails its op with the status, and the next op gets a good handle")
{
    const char* functions[] = {
        "cublasCreate",      "cublasSetStream",      "cublasSetWorkspace", "cublasSetPointerMode",
        "cublasSetMathMode", "cublasSetAtomicsMode", "cublasSdot"};
    for (const auto* name : functions) {
        for (const auto status :
             {CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_INTERNAL_ERROR, CUBLAS_STATUS_EXECUTION_FAILED}) {
            CAPTURE(name);
            CAPTURE(status);
            cuda_world w;
            // With one lane there is one handle.
            w.context.lanes = lane_policy::single();
            context_driver d(w);
            const auto x = d.floats(4);
            d.write(x, {1, 2, 3, 4});
            auto dot = [&] {
                exec<blas::dot<float>> r(blas::dot<float>{x, x, 4}, exec_options{});
                const auto ec = d.outcome_of(r);
                r.ec = {};
                if (!ec)
                    CHECK(std::get<1>(r.take()) == 30.0f);
                return ec;
            };
            w.blas.fail(name, status);
            CHECK(dot() == cuda::make_error(status));
            CHECK_FALSE(dot());
            CHECK_FALSE(dot());
            CHECK(w.blas.handles() == 1);
        }
    }
    cuda_world w;
    context_driver d(w);
    const auto x = d.floats(4);
    w.blas.fail("cublasCreate", CUBLAS_STATUS_ALLOC_FAILED);
    exec<blas::dot<float>> r(blas::dot<float>{x, x, 4}, exec_options{});
    CHECK(d.outcome_of(r) == errc::out_of_memory);
}

TEST_CASE("without cuBLAS its ops fail with library_missing, and other ops run")
{
    class without_blas final : public test::context_world {
    public:
        detail::context_factory factory() override
        {
            return cuda::make_factory({}, 0, cuda::library_tables(&driver.api()));
        }
        void poison() override {}
        fake_cuda driver;
    };
    const chosen_library nowhere(cuda::vendor_library::cublas, "/nowhere/libcublas.so.13");
    // cuBLAS may be loaded already and is never unloaded. The meaning of errors is tested below.
    if (cuda::cublas_api::load())
        return;
    without_blas w;
    context_driver d(w);
    const auto x = d.floats(4);
    d.write(x, {1, 2, 3, 4});
    for (int i = 0; i < 2; ++i) {
        exec<blas::dot<float>> r(blas::dot<float>{x, x, 4}, exec_options{});
        CHECK(d.outcome_of(r) == errc::library_missing);
        d.ended.clear();
    }
    exec<memory::fill<float>> fill(memory::fill<float>{x, 1.0f}, exec_options{});
    CHECK_FALSE(d.outcome_of(fill));
    CHECK(d.losses == 0);
}

TEST_CASE("errors that prevent the creation of a context do not end a live context")
{
    using backend = cuda::backend;
    for (const error_code& ec : {make_error_code(errc::library_missing), make_error_code(errc::library_too_old),
                                 cuda::make_error(CUDA_ERROR_INVALID_DEVICE)}) {
        CAPTURE(ec.message());
        CHECK(backend::classify(ec) == fault::library);
    }
    CHECK(is_device_lost(cuda::make_error(CUDA_ERROR_INVALID_DEVICE)));
    CHECK(backend::classify(cuda::make_error(CUDA_ERROR_ECC_UNCORRECTABLE)) == fault::device_lost);
    CHECK(backend::classify(cuda::make_error(CUDA_ERROR_ILLEGAL_ADDRESS)) == fault::context_lost);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_faults
