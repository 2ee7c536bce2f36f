#include "support/fake_cublaslt.hpp"

#include "cuda/blas/lt_plan.hpp"
#include "support/fake_cuda.hpp"
#include "unit/cuda/fake_session.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace test_cuda_fake_cublaslt {

// The fake refuses what the real library refuses, so that the other tests find such calls.
namespace {

using coaccel::cuda::lt_arguments;
using coaccel::cuda::lt_matrix;
using coaccel::cuda::lt_plan;
using coaccel::cuda::lt_problem;
using coaccel::cuda::lt_scales;

/// What a product is made of.
struct described {
    lt_problem problem;
    lt_arguments with;
};

using edit = std::function<void(described&)>;

class lt_calls {
public:
    lt_calls() { REQUIRE(lt.api().cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS); }
    ~lt_calls() { CHECK(lt.api().cublasLtDestroy(handle_) == CUBLAS_STATUS_SUCCESS); }

    /// Describes and launches a product, which does not run. Returns the complaint, if there is one.
    std::string complaint(const described& d)
    {
        const auto before = gpu.violations().size();
        lt_plan plan;
        if (plan.describe(lt.api(), d.problem, d.with) == CUBLAS_STATUS_SUCCESS &&
            plan.choose(lt.api(), handle_, sizeof(workspace_), nullptr) == CUBLAS_STATUS_SUCCESS)
            (void)plan.launch(lt.api(), handle_, d.with, {workspace_, sizeof(workspace_)}, session_.first);
        plan.destroy(lt.api());
        const auto found = gpu.violations();
        return found.size() == before ? std::string() : found[before];
    }

    test::fake_cuda gpu{test::stepped_cuda()};
    test::fake_cublaslt lt{gpu};

private:
    test::fake_session session_{gpu};
    cublasLtHandle_t handle_ = nullptr;
    alignas(256) char workspace_[256]{};
};

alignas(256) char memory[8][4096];

/// 16 by 16 matrices.
described square(cudaDataType factors, cudaDataType result)
{
    const lt_matrix factor{factors, 16, 16, 16, 0, 256}, d{result, 16, 16, 16, 0, 256};
    const bool integers = factors == CUDA_R_8I;
    const bool bytes = integers || factors == CUDA_R_8F_E4M3 || factors == CUDA_R_8F_E5M2;
    auto c = d;
    if (result == CUDA_R_8F_E4M3 || result == CUDA_R_8F_E5M2)
        c.type = CUDA_R_16BF;
    return {{.a = factor,
             .b = factor,
             .c = c,
             .d = d,
             .trans_a = bytes ? CUBLAS_OP_T : CUBLAS_OP_N,
             .trans_b = CUBLAS_OP_N,
             .batch = 1,
             .compute = integers ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
             .scale_type = integers ? CUDA_R_32I : CUDA_R_32F,
             .pointers = CUBLASLT_POINTER_MODE_HOST,
             .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
             .bias_type = c.type,
             .bias_alignment = 256,
             .scales = lt_scales::none,
             .scaled_d = false,
             .wants_amax = false},
            {.a = memory[0],
             .b = memory[1],
             .c = memory[2],
             .d = memory[3],
             .bias = memory[4],
             .scale_a = memory[5],
             .scale_b = memory[6],
             .scale_d = memory[7],
             .amax_d = memory[7],
             .alpha_address = nullptr,
             .beta_address = nullptr,
             .alpha_bits = 0,
             .beta_bits = 0}};
}

const described floats = square(CUDA_R_32F, CUDA_R_32F);
const described integers = square(CUDA_R_8I, CUDA_R_32I);
const described fp8 = square(CUDA_R_8F_E4M3, CUDA_R_16BF);
const described fp8_to_fp8 = square(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3);

constexpr std::uint32_t one = 0x3f800000;

} // namespace

TEST_SUITE_BEGIN("fake_cublaslt");

TEST_CASE("valid products are accepted")
{
    lt_calls f;
    const auto accept = [&f](
                            const described& d, const edit& change = [](described&) {}) {
        auto changed = d;
        change(changed);
        const auto complaint = f.complaint(changed);
        CHECK_MESSAGE(complaint.empty(), complaint);
    };
    for (const auto& d : {floats, integers, fp8, fp8_to_fp8})
        accept(d);
    accept(floats, [](described& d) { d.with.beta_bits = one; });
    accept(floats, [](described& d) { d.with.c = d.with.d, d.with.beta_bits = one; });
    accept(floats, [](described& d) { d.with.c = nullptr; });
    accept(floats, [](described& d) { d.problem.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS; });
    accept(fp8, [](described& d) { d.problem.scales = lt_scales::single; });
    accept(fp8, [](described& d) { d.problem.scales = lt_scales::several; });
    accept(fp8, [](described& d) { d.problem.a.type = CUDA_R_8F_E5M2; });
    accept(fp8_to_fp8, [](described& d) { d.problem.scaled_d = d.problem.wants_amax = true; });
    accept(fp8_to_fp8, [](described& d) { d.problem.b.type = d.problem.d.type = CUDA_R_8F_E5M2; });
    CHECK(f.gpu.violations().empty());
}

TEST_CASE("what the real library refuses is a violation")
{
    struct row {
        const described& of;
        edit change;
        const char* complaint;
    };
    const row rows[] = {
        {floats, [](described& d) { d.problem.b.type = CUDA_R_16F; }, "the types of the matrices do not fit"},
        {floats, [](described& d) { d.problem.c.type = CUDA_R_16F; }, "the types of the matrices do not fit"},
        {floats, [](described& d) { d.problem.a.type = CUDA_R_64F; }, "the type of A is unknown"},
        {floats, [](described& d) { d.problem.compute = CUBLAS_COMPUTE_32I; }, "another compute type"},
        {floats, [](described& d) { d.problem.scale_type = CUDA_R_32I; }, "the factors have another type"},
        {floats, [](described& d) { d.problem.b.rows = 8; }, "the sides of the matrices differ"},
        {floats, [](described& d) { d.problem.c.cols = 8; }, "the sides of the matrices differ"},
        {floats, [](described& d) { d.problem.c.ld = 15; }, "a leading dimension is too small"},
        {floats, [](described& d) { d.problem.batch = 2; }, "the results overlap"},
        {floats, [](described& d) { d.problem.scales = lt_scales::single; }, "only factors of fp8 have scales"},
        {floats, [](described& d) { d.problem.scaled_d = true; },
         "only results of fp8 have a scale and a greatest magnitude"},
        {fp8, [](described& d) { d.problem.wants_amax = true; },
         "only results of fp8 have a scale and a greatest magnitude"},
        {floats, [](described& d) { d.problem.epilogue = CUBLASLT_EPILOGUE_BIAS, d.with.bias = nullptr; },
         "there is no bias"},
        {fp8_to_fp8,
         [](described& d) { d.problem.epilogue = CUBLASLT_EPILOGUE_BIAS, d.problem.bias_type = CUDA_R_32F; },
         "the bias has another type"},
        {integers, [](described& d) { d.problem.epilogue = CUBLASLT_EPILOGUE_RELU; },
         "products of i8 have no epilogue"},
        {integers, [](described& d) { d.problem.d.type = CUDA_R_32F; }, "not a product of i8"},
        {integers, [](described& d) { d.problem.trans_a = CUBLAS_OP_N; },
         "8-bit factors must be transposed and not transposed"},
        {integers, [](described& d) { d.problem.b.ld = 18; },
         "a size of a product of 8-bit factors is not a multiple of 4 or 16"},
        {fp8, [](described& d) { d.problem.a.type = d.problem.b.type = CUDA_R_8F_E5M2; }, "not a product of fp8"},
        {fp8, [](described& d) { d.problem.compute = CUBLAS_COMPUTE_32F_PEDANTIC; }, "not a product of fp8"},
        {fp8_to_fp8, [](described& d) { d.problem.d.type = CUDA_R_8F_E5M2; }, "not a result of this product of fp8"},
        {fp8_to_fp8, [](described& d) { d.problem.c.type = CUDA_R_8F_E4M3; }, "C has another type"},
        {fp8, [](described& d) { d.problem.a.ld = 20; },
         "a size of a product of 8-bit factors is not a multiple of 4 or 16"},
        {fp8, [](described& d) { d.with.a = memory[0] + 8, d.problem.a.alignment = 8; },
         "the algorithm needs a better aligned address"},
#if CUBLAS_VERSION >= 120900
        {fp8_to_fp8, [](described& d) { d.problem.scales = lt_scales::several; },
         "scales for each line need both factors and a result that is not fp8"},
        {fp8, [](described& d) { d.problem.scales = lt_scales::several, d.with.scale_b = nullptr; },
         "scales for each line need both factors and a result that is not fp8"},
#endif
        {floats, [](described& d) { d.with.d = nullptr; }, "a matrix has no address"},
        {floats, [](described& d) { d.with.c = nullptr, d.with.beta_bits = one; },
         "C has no address, and beta may not be zero"},
        {floats, [](described& d) { d.with.c = d.with.d, d.problem.c.ld = 17; },
         "C and D are in the same memory with different layouts"},
        {floats, [](described& d) { d.with.c = memory[3] + 512, d.with.beta_bits = one; }, "C and D overlap"},
        {floats, [](described& d) { d.with.d = memory[3] + 128; }, "the algorithm needs a better aligned address"},
    };
    for (const auto& r : rows) {
        // A driver keeps the first violations only.
        lt_calls f;
        auto changed = r.of;
        r.change(changed);
        const std::string wanted = r.complaint;
        CAPTURE(wanted);
        CHECK(f.complaint(changed).ends_with(": " + wanted));
        CHECK(f.lt.alive() == 1);
    }
}

TEST_SUITE_END();

} // namespace test_cuda_fake_cublaslt
