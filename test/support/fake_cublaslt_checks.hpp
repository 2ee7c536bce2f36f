#ifndef COACCEL_TEST_SUPPORT_FAKE_CUBLASLT_CHECKS_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CUBLASLT_CHECKS_HPP

#include "support/fake_cublaslt.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

// What the fake cuBLASLt refuses, as the real one does.
namespace test::fake_lt {

using layout = fake_cublaslt::layout;
using operation = fake_cublaslt::operation;

inline std::size_t element_bytes(cudaDataType type)
{
    switch (type) {
    case CUDA_R_32F:
    case CUDA_R_32I: return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    default: return 1;
    }
}

inline bool is_fp8(cudaDataType type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

inline std::size_t batch_of(const layout& l)
{
    return static_cast<std::size_t>(l.attributes.get<std::int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1));
}

inline std::size_t stride_of(const layout& l)
{
    return static_cast<std::size_t>(l.attributes.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0));
}

/// The elements from the first to the last one of a matrix.
inline std::size_t extent_of(const layout& l)
{
    return (l.cols - 1) * static_cast<std::size_t>(l.ld) + l.rows;
}

inline std::size_t bytes_of(const layout& l)
{
    return ((batch_of(l) - 1) * stride_of(l) + extent_of(l)) * element_bytes(l.type);
}

/// The sides of op(X).
struct sides {
    std::uint64_t rows, cols;

    sides(const layout& l, bool transposed) : rows(transposed ? l.cols : l.rows), cols(transposed ? l.rows : l.cols) {}
};

/// What a product is, without its addresses.
struct problem {
    operation how;
    layout a, b, c, d;
};

inline bool is_transposed(const operation& how, cublasLtMatmulDescAttributes_t which)
{
    return how.attributes.get<std::int32_t>(which) != CUBLAS_OP_N;
}

inline unsigned epilogue_of(const operation& how)
{
    return how.attributes.get<std::uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
}

inline bool has_bias(const operation& how)
{
    return (epilogue_of(how) & CUBLASLT_EPILOGUE_BIAS) != 0;
}

inline const void* address(const operation& how, cublasLtMatmulDescAttributes_t which)
{
    return how.attributes.get<const void*>(which);
}

inline cudaDataType bias_type(const problem& p)
{
    return cudaDataType(p.how.attributes.get<std::int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.d.type));
}

/// Whether a factor has a scale for each of its lines.
inline bool scales_lines([[maybe_unused]] const operation& how, [[maybe_unused]] bool of_a)
{
#if CUBLAS_VERSION >= 120900
    return how.attributes.get<std::int32_t>(of_a ? CUBLASLT_MATMUL_DESC_A_SCALE_MODE
                                                 : CUBLASLT_MATMUL_DESC_B_SCALE_MODE) ==
           CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
#else
    return false;
#endif
}

/// Null, or what is wrong.
inline const char* wrong_types(const problem& p)
{
    const auto a = p.a.type, b = p.b.type, d = p.d.type;
    const auto compute = p.how.compute;
    if (p.how.scale_type != (a == CUDA_R_8I ? CUDA_R_32I : CUDA_R_32F))
        return "the factors have another type";
    if (a == CUDA_R_8I)
        return b == a && d == CUDA_R_32I && p.c.type == d &&
                       (compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC)
                   ? nullptr
                   : "not a product of i8";
    if (is_fp8(a)) {
        if (!is_fp8(b) || (a == CUDA_R_8F_E5M2 && b == a) || compute != CUBLAS_COMPUTE_32F)
            return "not a product of fp8";
        if (d == CUDA_R_8F_E5M2 ? a == b : !is_fp8(d) && d != CUDA_R_32F && d != CUDA_R_16F && d != CUDA_R_16BF)
            return "not a result of this product of fp8";
        return p.c.type == (is_fp8(d) ? CUDA_R_16BF : d) ? nullptr : "C has another type";
    }
    if (a != CUDA_R_32F && a != CUDA_R_16F && a != CUDA_R_16BF)
        return "the type of A is unknown";
    if (b != a || (d != a && d != CUDA_R_32F) || p.c.type != d)
        return "the types of the matrices do not fit";
    const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a == CUDA_R_32F;
    return tf32 || compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ? nullptr
                                                                                           : "another compute type";
}

/// Null, or what is wrong with what is added to a product and multiplied by it.
inline const char* wrong_extras(const problem& p)
{
    const bool fp8_result = is_fp8(p.d.type);
    if (has_bias(p.how)) {
        if (!address(p.how, CUBLASLT_MATMUL_DESC_BIAS_POINTER))
            return "there is no bias";
        const bool wide_of_fp8 = is_fp8(p.a.type) && p.d.type == CUDA_R_32F;
        if (bias_type(p) != (fp8_result || wide_of_fp8 ? CUDA_R_16BF : p.d.type))
            return "the bias has another type";
    }
    if (p.a.type == CUDA_R_8I && epilogue_of(p.how) != CUBLASLT_EPILOGUE_DEFAULT)
        return "products of i8 have no epilogue";
    const bool scaled_a = address(p.how, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) != nullptr;
    const bool scaled_b = address(p.how, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) != nullptr;
    if ((scaled_a || scaled_b) && !is_fp8(p.a.type))
        return "only factors of fp8 have scales";
    if (!fp8_result &&
        (address(p.how, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER) || address(p.how, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER)))
        return "only results of fp8 have a scale and a greatest magnitude";
    if (scales_lines(p.how, true) != scales_lines(p.how, false))
        return "only one factor has a scale for each line";
    if (scales_lines(p.how, true) && (fp8_result || !scaled_a || !scaled_b))
        return "scales for each line need both factors and a result that is not fp8";
    return nullptr;
}

/// Null, or what is wrong with the sizes.
inline const char* wrong_sizes(const problem& p)
{
    const sides a(p.a, is_transposed(p.how, CUBLASLT_MATMUL_DESC_TRANSA));
    const sides b(p.b, is_transposed(p.how, CUBLASLT_MATMUL_DESC_TRANSB));
    if (a.cols != b.rows || a.rows != p.d.rows || b.cols != p.d.cols || p.c.rows != p.d.rows || p.c.cols != p.d.cols)
        return "the sides of the matrices differ";
    for (const layout* l : {&p.a, &p.b, &p.c, &p.d}) {
        if (batch_of(*l) != batch_of(p.d))
            return "the numbers of matrices differ";
        if (l->ld < static_cast<std::int64_t>(l->rows))
            return "a leading dimension is too small";
    }
    if (batch_of(p.d) > 1 && stride_of(p.d) < extent_of(p.d))
        return "the results overlap";
    const std::uint64_t unit = is_fp8(p.a.type) ? 16 : p.a.type == CUDA_R_8I ? 4 : 1;
    if (unit == 1)
        return nullptr;
    if (!is_transposed(p.how, CUBLASLT_MATMUL_DESC_TRANSA) || is_transposed(p.how, CUBLASLT_MATMUL_DESC_TRANSB))
        return "8-bit factors must be transposed and not transposed";
    for (const std::uint64_t size :
         {a.rows, a.cols, std::uint64_t(p.a.ld), std::uint64_t(p.b.ld), std::uint64_t(p.c.ld), std::uint64_t(p.d.ld)})
        if (size % unit != 0)
            return "a size of a product of 8-bit factors is not a multiple of 4 or 16";
    return nullptr;
}

/// Null, or what is wrong.
inline const char* wrong_problem(const problem& p)
{
    for (const auto check : {&wrong_types, &wrong_extras, &wrong_sizes})
        if (const char* wrong = check(p))
            return wrong;
    return nullptr;
}

/// What an algorithm contains.
struct algorithm_content {
    static constexpr std::uint64_t magic = 0x636f616363656c21;

    std::uint64_t made_here;
    std::uint64_t number;
    std::uint64_t choice;
    /// Of A, B, C and D.
    std::array<std::uint16_t, 4> alignments;
    std::uint64_t of_problem;
};
static_assert(sizeof(algorithm_content) <= sizeof(cublasLtMatmulAlgo_t));

inline algorithm_content content_of(const cublasLtMatmulAlgo_t& algorithm)
{
    algorithm_content c;
    std::memcpy(&c, &algorithm, sizeof(c));
    return c;
}

inline bool is_address(int attribute)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_AMAX_D_POINTER: return true;
    default: return false;
    }
}

/// A number for everything but the addresses.
class problem_hash {
public:
    explicit problem_hash(const problem& p)
    {
        add(p.how.compute);
        add(p.how.scale_type);
        p.how.attributes.for_each([this](int which, const std::vector<char>& value) {
            add(which);
            // A factor without a scale is like one with a scale of one.
            if (which == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER || which == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER)
                return;
            if (is_address(which))
                add(std::ranges::count(value, char()) != std::ranges::ssize(value));
            else
                add_bytes(value);
        });
        for (const layout* l : {&p.a, &p.b, &p.c, &p.d}) {
            add(l->type);
            add(l->rows);
            add(l->cols);
            add(l->ld);
            l->attributes.for_each([this](int which, const std::vector<char>& value) {
                add(which);
                add_bytes(value);
            });
        }
    }

    std::uint64_t value() const { return value_; }

private:
    template <class Number>
    void add(Number n)
    {
        value_ = (value_ ^ static_cast<std::uint64_t>(n)) * 0x100000001b3;
    }

    void add_bytes(const std::vector<char>& bytes)
    {
        for (const char c : bytes)
            add(c);
    }

    std::uint64_t value_ = 0xcbf29ce484222325;
};

inline bool equal(const layout& one, const layout& other)
{
    return one.type == other.type && one.ld == other.ld && stride_of(one) == stride_of(other);
}

inline bool overlap(const void* one, std::size_t bytes, const void* other, std::size_t other_bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(one), second = reinterpret_cast<std::uintptr_t>(other);
    return first < second + other_bytes && second < first + bytes;
}

/// Null, or what is wrong with the addresses of a product.
inline const char* wrong_addresses(const fake_cublaslt::product& p, const algorithm_content& content, bool reads_c)
{
    if (!p.a_address || !p.b_address || !p.d_address)
        return "a matrix has no address";
    if (reads_c && !p.c_address)
        return "C has no address, and beta may not be zero";
    if (p.c_address == p.d_address && !equal(p.c, p.d))
        return "C and D are in the same memory with different layouts";
    if (reads_c && p.c_address != p.d_address && overlap(p.c_address, bytes_of(p.c), p.d_address, bytes_of(p.d)))
        return "C and D overlap";
    const std::uintptr_t least = is_fp8(p.a.type) ? 16 : 1;
    const void* const addresses[] = {p.a_address, p.b_address, p.c_address, p.d_address};
    for (std::size_t i = 0; i < std::size(addresses); ++i) {
        const auto at = reinterpret_cast<std::uintptr_t>(addresses[i]);
        if (at % content.alignments[i] != 0 || at % least != 0)
            return "the algorithm needs a better aligned address";
    }
    return nullptr;
}

} // namespace test::fake_lt

#endif
