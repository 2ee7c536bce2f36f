#ifndef COACCEL_TEST_UNIT_CUDA_BLAS_LT_CALLS_HPP
#define COACCEL_TEST_UNIT_CUDA_BLAS_LT_CALLS_HPP

#include "blas_fixture.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

// The descriptors with which an op calls cuBLASLt.
namespace test::lt_calls {

using product = fake_cublaslt::product;
using coaccel::ref;

template <class T>
ref<T> elements(blas_fixture& f)
{
    return f.upload(std::vector<T>(1024, T(1)));
}

template <class T>
cudaDataType type_of()
{
    if constexpr (std::is_same_v<T, float>)
        return CUDA_R_32F;
    else if constexpr (std::is_same_v<T, coaccel::half>)
        return CUDA_R_16F;
    else if constexpr (std::is_same_v<T, coaccel::bfloat16>)
        return CUDA_R_16BF;
    else
        return std::is_same_v<T, coaccel::float8_e4m3> ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

template <class Op>
product call_of(blas_fixture& f, const Op& op)
{
    const auto done = f.run(op);
    REQUIRE_MESSAGE(!done, done.message());
    return f.lt.products().back();
}

template <class T>
const void* place(const blas_fixture& f, const ref<T>& r)
{
    return static_cast<const T*>(f.buffers[r.raw().slot].first) + r.raw().offset;
}

inline void check_layout(const fake_cublaslt::layout& got, cudaDataType type, std::uint64_t rows, std::uint64_t cols,
                         std::int64_t ld)
{
    CHECK(got.type == type);
    CHECK(got.rows == rows);
    CHECK(got.cols == cols);
    CHECK(got.ld == ld);
    CHECK_FALSE(got.attributes.has(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
    CHECK_FALSE(got.attributes.has(CUBLASLT_MATRIX_LAYOUT_ORDER));
}

inline void check_batch(const fake_cublaslt::layout& got, std::int32_t batch, std::int64_t stride)
{
    CHECK(got.attributes.get<std::int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) == batch);
    CHECK(got.attributes.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, -1) == stride);
}

inline std::uint32_t epilogue(const product& p)
{
    return p.how.attributes.get<std::uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE);
}

inline std::int32_t number(const product& p, cublasLtMatmulDescAttributes_t which)
{
    return p.how.attributes.get<std::int32_t>(which, -1);
}

inline const void* address(const product& p, cublasLtMatmulDescAttributes_t which)
{
    return p.how.attributes.get<const void*>(which);
}

/// C and D are the same matrix.
inline void check_previous_d(const product& p)
{
    CHECK(p.c_address == p.d_address);
    check_layout(p.c, p.d.type, p.d.rows, p.d.cols, p.d.ld);
}

template <class Operand>
const void* place_of(const blas_fixture& f, const Operand& o)
{
    return place(f, ref<typename Operand::value_type>::from_raw(o.raw));
}

} // namespace test::lt_calls

#endif
