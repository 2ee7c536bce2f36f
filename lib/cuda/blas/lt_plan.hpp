#ifndef COACCEL_CUDA_BLAS_LT_PLAN_HPP
#define COACCEL_CUDA_BLAS_LT_PLAN_HPP

#include "cuda/blas/cublaslt_api.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace coaccel::cuda {

/// An operand as it is in memory.
struct lt_matrix {
    cudaDataType_t type;
    std::uint64_t rows, cols;
    std::int64_t ld;
    /// The distance between the matrices of a batch.
    std::int64_t stride;
    /// The address is a multiple of it, at most 256 bytes. cuBLASLt chooses a kernel that permits it.
    std::uint32_t alignment;

    friend bool operator==(const lt_matrix&, const lt_matrix&) = default;
};

/// Which scales the factors have.
enum class lt_scales : std::uint8_t {
    none,
    single,  ///< One for each factor that has one.
    several, ///< One for each row of A and for each column of B.
};

/// Everything by which cuBLASLt may choose an algorithm.
struct lt_problem {
    lt_matrix a, b, c, d;
    cublasOperation_t trans_a, trans_b;
    std::int32_t batch;
    cublasComputeType_t compute;
    cudaDataType_t scale_type;
    cublasLtPointerMode_t pointers;
    cublasLtEpilogue_t epilogue;
    /// If the epilogue has a bias.
    cudaDataType_t bias_type;
    std::uint32_t bias_alignment;
    lt_scales scales;
    /// Whether D has a scale, and its greatest magnitude is wanted.
    bool scaled_d, wants_amax;
    /// It is the transposed product of a row-major op, whose B is the first factor.
    bool b_first = false;

    bool has_bias() const noexcept { return (static_cast<unsigned>(epilogue) & CUBLASLT_EPILOGUE_BIAS) != 0; }

    friend bool operator==(const lt_problem&, const lt_problem&) = default;
};

/// The operands of one product.
struct lt_arguments {
    const void* a;
    const void* b;
    /// Null: it is not read, because beta is zero.
    const void* c;
    void* d;
    /// Null: there is none.
    const void* bias;
    const void* scale_a;
    const void* scale_b;
    const void* scale_d;
    void* amax_d;
    /// The factors in device memory; null: their values follow.
    const void* alpha_address;
    const void* beta_address;
    /// A float or an i32.
    std::uint32_t alpha_bits;
    std::uint32_t beta_bits;

    const void* alpha() const noexcept { return alpha_address ? alpha_address : &alpha_bits; }
    const void* beta() const noexcept { return beta_address ? beta_address : &beta_bits; }

    /// Whether C is another matrix than D.
    bool has_own_c() const noexcept { return c && c != d; }
};

/// Memory that cuBLASLt may use for a product.
struct lt_workspace {
    void* memory;
    std::size_t bytes;
};

/// Whether a product was refused because its algorithm cannot be used, although it was found. Other errors may be
/// faults.
bool is_refusal(cublasStatus_t s) noexcept;

/// The descriptors and the algorithm for one problem. Used by one thread at a time, because each launch writes the
/// addresses of bias and scales to the descriptor.
class lt_plan {
public:
    lt_plan() = default;
    lt_plan(const lt_plan&) = delete;
    lt_plan& operator=(const lt_plan&) = delete;

    /// Makes the descriptors. Preconditions: there are none. Afterwards, also if it has failed, `destroy` is called.
    cublasStatus_t describe(const cublaslt_api& api, const lt_problem& p, const lt_arguments& with);

    /// Chooses the algorithm, which may take long. `tuned`: the algorithm that was measured to be the fastest; null:
    /// that which cuBLASLt proposes, which is also chosen if `tuned` cannot be used. Errors:
    /// CUBLAS_STATUS_NOT_SUPPORTED if there is none. Preconditions: it was described.
    cublasStatus_t choose(const cublaslt_api& api, cublasLtHandle_t handle, std::size_t workspace_bytes,
                          const cublasLtMatmulAlgo_t* tuned);

    /// The algorithms for the problem, at most `most`, that which cuBLASLt proposes first at the beginning.
    /// Preconditions: it was described.
    cublasStatus_t find_algorithms(const cublaslt_api& api, cublasLtHandle_t handle, std::size_t workspace_bytes,
                                   int most, std::vector<cublasLtMatmulAlgo_t>& found) const;

    /// Uses an algorithm that is measured.
    void use(const cublasLtMatmulAlgo_t& algorithm) noexcept
    {
        algorithm_ = algorithm;
        tuned_ = true;
    }

    cublasStatus_t launch(const cublaslt_api& api, cublasLtHandle_t handle, const lt_arguments& with,
                          const lt_workspace& workspace, CUstream_st* stream);

    void destroy(const cublaslt_api& api) noexcept;

    const lt_problem& problem() const noexcept { return problem_; }
    const cublasLtMatmulAlgo_t& algorithm() const noexcept { return algorithm_; }
    /// Whether its algorithm is one that was measured to be the fastest.
    bool is_tuned() const noexcept { return tuned_; }

    /// That of its problem, see key_of.
    std::string key;
    /// The ops that use it: such a plan stays.
    std::atomic<int> users{0};
    /// No further op uses it.
    bool outdated = false;

private:
    cublasStatus_t make_operation(const cublaslt_api& api);
    cublasStatus_t set_addresses(const cublaslt_api& api, const lt_arguments& with);

    lt_problem problem_{};
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t a_ = nullptr;
    cublasLtMatrixLayout_t b_ = nullptr;
    cublasLtMatrixLayout_t c_ = nullptr;
    cublasLtMatrixLayout_t d_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_{};
    bool tuned_ = false;
};

} // namespace coaccel::cuda

#endif
