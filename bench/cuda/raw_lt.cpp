#include "raw_lt.hpp"

#include <string>

namespace coaccel::bench {

raw_lt::raw_lt(const raw_gpu& raw, const lt_product& p, const lt_operands& on)
    : raw_(raw), on_(on), api_(value_of(cuda::cublaslt_api::load(), "cuBLASLt")), workspace_(raw, workspace_bytes)
{
    const auto inside = raw_.enter();
    check(api_->cublasLtCreate(&handle_), "cublasLtCreate");
    describe(p);
    choose();
}

raw_lt::~raw_lt()
{
    CUcontext popped = nullptr;
    if (raw_.api().cuCtxPushCurrent(raw_.context()) != CUDA_SUCCESS)
        return;
    (void)api_->cublasLtMatrixLayoutDestroy(factor_);
    (void)api_->cublasLtMatrixLayoutDestroy(result_);
    (void)api_->cublasLtMatmulDescDestroy(operation_);
    (void)api_->cublasLtDestroy(handle_);
    (void)raw_.api().cuCtxPopCurrent(&popped);
}

void raw_lt::describe(const lt_product& p)
{
    const auto set = [this](cublasLtMatmulDescAttributes_t which, const auto& value) {
        check(api_->cublasLtMatmulDescSetAttribute(operation_, which, &value, sizeof(value)),
              "cublasLtMatmulDescSetAttribute");
    };
    check(api_->cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    if (on_.bias)
        set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, on_.bias);
    if (on_.scale) {
        set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, on_.scale);
        set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, on_.scale);
    }
    const auto size = static_cast<std::uint64_t>(p.n);
    check(api_->cublasLtMatrixLayoutCreate(&factor_, p.factors, size, size, p.n), "cublasLtMatrixLayoutCreate");
    check(api_->cublasLtMatrixLayoutCreate(&result_, p.result, size, size, p.n), "cublasLtMatrixLayoutCreate");
}

void raw_lt::choose()
{
    cublasLtMatmulPreference_t preference = nullptr;
    check(api_->cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const std::uint64_t bytes = workspace_bytes;
    check(api_->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                                     sizeof(bytes)),
          "cublasLtMatmulPreferenceSetAttribute");
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const auto status = api_->cublasLtMatmulAlgoGetHeuristic(handle_, operation_, factor_, factor_, result_, result_,
                                                             preference, 1, &found, &count);
    (void)api_->cublasLtMatmulPreferenceDestroy(preference);
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    algorithm_ = found.algo;
}

void raw_lt::multiply() const
{
    const float one = 1;
    const float zero = 0;
    check(api_->cublasLtMatmul(handle_, operation_, &one, on_.a, factor_, on_.b, factor_, &zero, on_.c, result_, on_.c,
                               result_, &algorithm_, workspace_.pointer(), workspace_bytes, raw_.stream()),
          "cublasLtMatmul");
}

void raw_lt::check(cublasStatus_t s, const char* what) const
{
    if (s != CUBLAS_STATUS_SUCCESS)
        throw failure(std::string(what) + ": status " + std::to_string(static_cast<int>(s)));
}

} // namespace coaccel::bench
