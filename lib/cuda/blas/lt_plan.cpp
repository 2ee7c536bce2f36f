#include "cuda/blas/lt_plan.hpp"

#include <span>
#include <utility>

namespace coaccel::cuda {
namespace {

/// The calls of one sequence: after a failure the others are not made.
class call_sequence {
public:
    template <class Call>
    call_sequence& then(const Call& call)
    {
        if (status_ == CUBLAS_STATUS_SUCCESS)
            status_ = call();
        return *this;
    }

    cublasStatus_t status() const noexcept { return status_; }

private:
    cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

/// Sets an attribute of a descriptor, which may be made by an earlier call of the sequence.
template <class Function, class Descriptor, class Attribute, class Value>
auto set(Function function, const Descriptor& of, Attribute which, Value value)
{
    return [=, &of] { return function(of, which, &value, sizeof value); };
}

cublasStatus_t make_layout(const cublaslt_api& api, cublasLtMatrixLayout_t& made, const lt_matrix& m,
                           std::int32_t batch)
{
    const auto set_to = api.cublasLtMatrixLayoutSetAttribute;
    call_sequence calls;
    calls.then([&] { return api.cublasLtMatrixLayoutCreate(&made, m.type, m.rows, m.cols, m.ld); });
    if (batch > 1)
        calls.then(set(set_to, made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch))
            .then(set(set_to, made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.stride));
    return calls.status();
}

} // namespace

bool is_refusal(cublasStatus_t s) noexcept
{
    return s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE || s == CUBLAS_STATUS_ARCH_MISMATCH;
}

cublasStatus_t lt_plan::describe(const cublaslt_api& api, const lt_problem& p, const lt_arguments& with)
{
    problem_ = p;
    return call_sequence()
        .then([&] { return make_operation(api); })
        .then([&] { return make_layout(api, a_, p.a, p.batch); })
        .then([&] { return make_layout(api, b_, p.b, p.batch); })
        .then([&] { return make_layout(api, c_, p.c, p.batch); })
        .then([&] { return make_layout(api, d_, p.d, p.batch); })
        .then([&] { return set_addresses(api, with); })
        .status();
}

cublasStatus_t lt_plan::make_operation(const cublaslt_api& api)
{
    const lt_problem& p = problem_;
    const auto attribute = [&](cublasLtMatmulDescAttributes_t which, auto value) {
        return set(api.cublasLtMatmulDescSetAttribute, operation_, which, value);
    };
    call_sequence calls;
    calls.then([&] { return api.cublasLtMatmulDescCreate(&operation_, p.compute, p.scale_type); })
        .then(attribute(CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t(p.pointers)))
        .then(attribute(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t(p.trans_a)))
        .then(attribute(CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t(p.trans_b)))
        .then(attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t(p.epilogue)));
    if (p.has_bias())
        calls.then(attribute(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t(p.bias_type)));
    if (p.scales == lt_scales::several) {
#if CUBLAS_VERSION >= 120900
        const auto vector = std::int32_t(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
        calls.then(attribute(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, vector))
            .then(attribute(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, vector));
#else
        // The headers of this build do not know it.
        calls.then([] { return CUBLAS_STATUS_NOT_SUPPORTED; });
#endif
    }
    return calls.status();
}

cublasStatus_t lt_plan::find_algorithms(const cublaslt_api& api, cublasLtHandle_t handle, std::size_t workspace_bytes,
                                        int most, std::vector<cublasLtMatmulAlgo_t>& found) const
{
    const lt_problem& p = problem_;
    cublasLtMatmulPreference_t preference = nullptr;
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
        return set(api.cublasLtMatmulPreferenceSetAttribute, preference, which, value);
    };
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
    int count = 0;
    const auto status = call_sequence()
                            .then([&] { return api.cublasLtMatmulPreferenceCreate(&preference); })
                            .then(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(workspace_bytes)))
                            // The parts of a divided sum are not rounded to 16 bits, and are added in a fixed order.
                            .then(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)))
                            .then(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.a.alignment))
                            .then(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.b.alignment))
                            .then(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.c.alignment))
                            .then(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.d.alignment))
                            .then([&] {
                                return api.cublasLtMatmulAlgoGetHeuristic(handle, operation_, a_, b_, c_, d_,
                                                                          preference, most, results.data(), &count);
                            })
                            .status();
    if (preference)
        (void)api.cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (count == 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (const auto& r : std::span(results).first(static_cast<std::size_t>(count)))
        if (r.state == CUBLAS_STATUS_SUCCESS)
            found.push_back(r.algo);
    return found.empty() ? results.front().state : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_plan::choose(const cublaslt_api& api, cublasLtHandle_t handle, std::size_t workspace_bytes,
                               const cublasLtMatmulAlgo_t* tuned)
{
    if (tuned) {
        // It may come from a file.
        cublasLtMatmulHeuristicResult_t checked{};
        if (api.cublasLtMatmulAlgoCheck(handle, operation_, a_, b_, c_, d_, tuned, &checked) == CUBLAS_STATUS_SUCCESS &&
            checked.workspaceSize <= workspace_bytes) {
            use(*tuned);
            return CUBLAS_STATUS_SUCCESS;
        }
    }
    tuned_ = false;
    std::vector<cublasLtMatmulAlgo_t> found;
    const auto status = find_algorithms(api, handle, workspace_bytes, 1, found);
    if (status == CUBLAS_STATUS_SUCCESS)
        algorithm_ = found.front();
    return status;
}

cublasStatus_t lt_plan::set_addresses(const cublaslt_api& api, const lt_arguments& with)
{
    call_sequence calls;
    const auto set_if = [&](bool used, cublasLtMatmulDescAttributes_t which, const void* value) {
        if (used)
            calls.then(set(api.cublasLtMatmulDescSetAttribute, operation_, which, value));
    };
    const lt_problem& p = problem_;
    set_if(p.has_bias(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, with.bias);
    // Also null, if a factor has none.
    set_if(p.scales != lt_scales::none, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, with.scale_a);
    set_if(p.scales != lt_scales::none, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, with.scale_b);
    set_if(p.scaled_d, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, with.scale_d);
    set_if(p.wants_amax, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, with.amax_d);
    return calls.status();
}

cublasStatus_t lt_plan::launch(const cublaslt_api& api, cublasLtHandle_t handle, const lt_arguments& with,
                               const lt_workspace& workspace, CUstream_st* stream)
{
    return call_sequence()
        .then([&] { return set_addresses(api, with); })
        .then([&] {
            return api.cublasLtMatmul(handle, operation_, with.alpha(), with.a, a_, with.b, b_, with.beta(), with.c, c_,
                                      with.d, d_, &algorithm_, workspace.memory, workspace.bytes, stream);
        })
        .status();
}

void lt_plan::destroy(const cublaslt_api& api) noexcept
{
    if (operation_)
        (void)api.cublasLtMatmulDescDestroy(std::exchange(operation_, nullptr));
    for (cublasLtMatrixLayout_t* layout : {&a_, &b_, &c_, &d_})
        if (*layout)
            (void)api.cublasLtMatrixLayoutDestroy(std::exchange(*layout, nullptr));
}

} // namespace coaccel::cuda
