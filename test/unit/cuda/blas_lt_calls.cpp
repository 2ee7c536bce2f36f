#include "blas_fixture.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

namespace test_cuda_blas_lt_calls {

// The descriptors with which the ops call cuBLASLt.
namespace {

using namespace coaccel;
using blas::activation;
using blas::math;
using blas::transpose;
using product = test::fake_cublaslt::product;

template <class T>
ref<T> elements(test::blas_fixture& f)
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
    else if constexpr (std::is_same_v<T, bfloat16>)
        return CUDA_R_16BF;
    else
        return std::is_same_v<T, float8_e4m3> ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

template <class Op>
product call_of(test::blas_fixture& f, const Op& op)
{
    const auto done = f.run(op);
    REQUIRE_MESSAGE(!done, done.message());
    return f.lt.products().back();
}

template <class T>
const void* place(const test::blas_fixture& f, const ref<T>& r)
{
    return static_cast<const T*>(f.buffers[r.raw().slot].first) + r.raw().offset;
}

void check_layout(const test::fake_cublaslt::layout& got, cudaDataType type, std::uint64_t rows, std::uint64_t cols,
                  std::int64_t ld)
{
    CHECK(got.type == type);
    CHECK(got.rows == rows);
    CHECK(got.cols == cols);
    CHECK(got.ld == ld);
    CHECK_FALSE(got.attributes.has(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
    CHECK_FALSE(got.attributes.has(CUBLASLT_MATRIX_LAYOUT_ORDER));
}

void check_batch(const test::fake_cublaslt::layout& got, std::int32_t batch, std::int64_t stride)
{
    CHECK(got.attributes.get<std::int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) == batch);
    CHECK(got.attributes.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, -1) == stride);
}

std::uint32_t epilogue(const product& p)
{
    return p.how.attributes.get<std::uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE);
}

std::int32_t number(const product& p, cublasLtMatmulDescAttributes_t which)
{
    return p.how.attributes.get<std::int32_t>(which, -1);
}

const void* address(const product& p, cublasLtMatmulDescAttributes_t which)
{
    return p.how.attributes.get<const void*>(which);
}

template <class T, class R>
void check_types()
{
    test::blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f);
    const auto c = elements<R>(f), bias = elements<R>(f);
    const blas::matmul<T, R> plain{
        .a = a, .b = b, .c = c, .m = 3, .n = 5, .k = 4, .trans_a = transpose::conjugate, .ldb = 6, .ldc = 7};
    auto p = call_of(f, plain);
    check_layout(p.a, type_of<T>(), 4, 3, 4);
    check_layout(p.b, type_of<T>(), 4, 5, 6);
    check_layout(p.c, type_of<R>(), 3, 5, 7);
    CHECK(p.a_address == place(f, a));
    CHECK(p.b_address == place(f, b));
    CHECK(p.c_address == place(f, c));
    CHECK(p.how.compute == CUBLAS_COMPUTE_32F);
    CHECK(p.how.scale_type == CUDA_R_32F);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_N);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_HOST);
    CHECK(epilogue(p) == CUBLASLT_EPILOGUE_DEFAULT);
    CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
    CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER));
    const auto with = [&](const auto& op, activation what, math how) {
        auto changed = op;
        changed.activation = what;
        changed.math = how;
        return call_of(f, changed);
    };
    CHECK(epilogue(with(plain, activation::relu, math::standard)) == CUBLASLT_EPILOGUE_RELU);
    CHECK(epilogue(with(plain, activation::gelu, math::standard)) == CUBLASLT_EPILOGUE_GELU);
    constexpr auto fast = std::is_same_v<T, float> ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    CHECK(with(plain, activation::none, math::tf32).how.compute == fast);
    CHECK(with(plain, activation::none, math::pedantic).how.compute == CUBLAS_COMPUTE_32F_PEDANTIC);

    const blas::matmul_bias<T, R> biased{.a = a, .b = b, .bias = bias.subspan(2, 3), .c = c, .m = 3, .n = 5, .k = 4};
    p = call_of(f, biased);
    CHECK(epilogue(p) == CUBLASLT_EPILOGUE_BIAS);
    CHECK(address(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER) == place(f, bias.subspan(2, 3)));
    CHECK(number(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) == type_of<R>());
    CHECK(epilogue(with(biased, activation::relu, math::standard)) == CUBLASLT_EPILOGUE_RELU_BIAS);
    CHECK(epilogue(with(biased, activation::gelu, math::standard)) == CUBLASLT_EPILOGUE_GELU_BIAS);
    // The plan of the other bias is not used with its address.
    auto other = biased;
    other.bias = bias.subspan(130, 3);
    CHECK(address(call_of(f, other), CUBLASLT_MATMUL_DESC_BIAS_POINTER) == place(f, bias.subspan(130, 3)));
    CHECK(address(call_of(f, biased), CUBLASLT_MATMUL_DESC_BIAS_POINTER) == place(f, bias.subspan(2, 3)));
}

} // namespace

TEST_SUITE_BEGIN("calls of cuBLASLt");

TEST_CASE("layouts, types and epilogues")
{
    check_types<float, float>();
    check_types<coaccel::half, coaccel::half>();
    check_types<coaccel::half, float>();
    check_types<bfloat16, bfloat16>();
    check_types<bfloat16, float>();
}

TEST_CASE("strides of a batch")
{
    test::blas_fixture f;
    const auto a = elements<float>(f), b = elements<float>(f), c = elements<float>(f);
    const auto p = call_of(
        f,
        blas::matmul<float>{.a = a, .b = b, .c = c, .m = 2, .n = 3, .k = 4, .batch = 5, .stride_b = 13, .stride_c = 7});
    check_batch(p.a, 5, 0);
    check_batch(p.b, 5, 13);
    check_batch(p.c, 5, 7);
    CHECK(f.look(c)[4 * 7] == 4);
    CHECK(f.look(c)[6] == 1);
    // A stride without a meaning does not matter.
    const auto one = call_of(
        f,
        blas::matmul<float>{
            .a = a, .b = b, .c = c, .m = 2, .n = 3, .k = 1, .stride_a = ~std::uint64_t(0), .lda = ~std::uint64_t(0)});
    CHECK(one.a.ld == 2);
    CHECK_FALSE(one.a.attributes.has(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
}

TEST_CASE("the choice knows the workspace and the alignment of the operands")
{
    cuda_options how;
    how.blas_workspace = 1 << 20;
    test::blas_fixture f(how);
    const auto a = elements<coaccel::half>(f), b = elements<coaccel::half>(f), c = elements<coaccel::half>(f);
    (void)call_of(
        f, blas::matmul<coaccel::half>{.a = a.subspan(1, 16), .b = b.subspan(24, 16), .c = c, .m = 4, .n = 4, .k = 4});
    const auto p = f.lt.preferences();
    CHECK(p.get<std::uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) == 1 << 20);
    CHECK(p.get<std::uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    CHECK(p.get<std::uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) == 2);
    CHECK(p.get<std::uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) == 16);
    CHECK(p.get<std::uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) == 256);
    CHECK(p.get<std::uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) == 256);
}

TEST_CASE("i8 is computed in i32")
{
    test::blas_fixture f;
    const auto a = elements<std::int8_t>(f), b = elements<std::int8_t>(f);
    const auto c = elements<std::int32_t>(f);
    const auto p = call_of(f, blas::matmul<std::int8_t, std::int32_t>{
                                  .a = a, .b = b, .c = c, .m = 4, .n = 5, .k = 8, .trans_a = transpose::yes});
    check_layout(p.a, CUDA_R_8I, 8, 4, 8);
    check_layout(p.b, CUDA_R_8I, 8, 5, 8);
    check_layout(p.c, CUDA_R_32I, 4, 5, 4);
    CHECK(p.how.compute == CUBLAS_COMPUTE_32I);
    CHECK(p.how.scale_type == CUDA_R_32I);
}

TEST_CASE_TEMPLATE("fp8 has scales, and a bias in 16 bits", T, float8_e4m3, float8_e5m2)
{
    const auto check = []<class R, class Bias>() {
        test::blas_fixture f;
        const auto a = elements<T>(f);
        const auto b = elements<float8_e4m3>(f);
        const auto c = elements<R>(f);
        const auto bias = elements<Bias>(f);
        const auto scales = elements<float>(f);
        const auto scale_a = scales.subspan(1, 1), scale_b = scales.subspan(2, 1);
        auto p =
            call_of(f, blas::matmul_fp8<T, R>{
                           .a = a, .b = b, .scale_a = scale_a, .scale_b = scale_b, .c = c, .m = 16, .n = 5, .k = 32});
        check_layout(p.a, type_of<T>(), 32, 16, 32);
        check_layout(p.b, CUDA_R_8F_E4M3, 32, 5, 32);
        check_layout(p.c, type_of<R>(), 16, 5, 16);
        CHECK(p.how.compute == CUBLAS_COMPUTE_32F);
        CHECK(p.how.scale_type == CUDA_R_32F);
        CHECK(address(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) == place(f, scale_a));
        CHECK(address(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) == place(f, scale_b));
        CHECK(epilogue(p) == CUBLASLT_EPILOGUE_DEFAULT);
        p = call_of(f, blas::matmul_fp8_bias<T, R>{.a = a,
                                                   .b = b,
                                                   .scale_a = scale_b,
                                                   .scale_b = scale_a,
                                                   .bias = bias,
                                                   .c = c,
                                                   .m = 16,
                                                   .n = 5,
                                                   .k = 32,
                                                   .activation = activation::gelu});
        CHECK(epilogue(p) == CUBLASLT_EPILOGUE_GELU_BIAS);
        CHECK(number(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) == type_of<Bias>());
        CHECK(address(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) == place(f, scale_b));
    };
    check.template operator()<coaccel::half, coaccel::half>();
    check.template operator()<bfloat16, bfloat16>();
    check.template operator()<float, bfloat16>();
}

TEST_CASE("a GPU without fp8 refuses it")
{
    // An A100.
    test::blas_fixture f({}, {.attributes = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
                                             {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0}}});
    const auto a = elements<float8_e4m3>(f), b = elements<float8_e4m3>(f);
    const auto c = elements<float>(f), scale = elements<float>(f);
    const auto ec = f.run(blas::matmul_fp8<float8_e4m3, float>{
        .a = a, .b = b, .scale_a = scale, .scale_b = scale, .c = c, .m = 16, .n = 5, .k = 32});
    CHECK(ec == errc::unsupported_op);
    CHECK(ec.message() == "blas.matmul_fp8<f32 from f8_e4m3>: the GPU has compute capability 8.0, fp8 needs 8.9");
    CHECK(f.lt.products().empty());
}

TEST_CASE("factors that are parameters of a plan are read from device memory")
{
    test::blas_fixture f;
    const auto a = f.upload<float>({3}), b = f.upload<float>({5}), c = f.upload<float>({7}),
               factors = f.upload<float>({2, 10});
    const blas::matmul<float> op{.a = a, .b = b, .c = c, .m = 1, .n = 1, .k = 1, .alpha = -1, .beta = -1};
    const auto* const in_memory = static_cast<const float*>(place(f, factors));
    const scalar_address scalars[] = {{offsetof(blas::matmul<float>, alpha), in_memory},
                                      {offsetof(blas::matmul<float>, beta), in_memory + 1}};
    REQUIRE_FALSE(f.run(op));
    CHECK(f.look(c)[0] == -22);
    const auto here = f.b->enter();
    bound_op o = f.bind(op);
    o.scalars = scalars;
    REQUIRE_FALSE(f.repeat_until_answered([&] { return test::try_start(*f.b, *f.lane, o); }));
    REQUIRE_FALSE(f.finish_stream());
    CHECK_FALSE(f.b->finish(o));
    const auto p = f.lt.products().back();
    CHECK(number(p, CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_DEVICE);
    CHECK(p.alpha == in_memory);
    CHECK(p.beta == in_memory + 1);
    CHECK(f.look(c)[0] == 2 * 15 + 10 * -22);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_lt_calls
