#include "blas_lt_calls.hpp"

#include <coaccel/core/tune.hpp>

namespace test_cuda_blas_lt_fp8_calls {

namespace {

using namespace coaccel;
using namespace test::lt_calls;
using blas::activation;
using blas::transpose;

/// A and B of fp8, with k of 32, in column-major order.
template <class Op>
Op fp8_product(test::blas_fixture& f)
{
    return {.a = elements<typename Op::source_type>(f),
            .b = elements<typename Op::second_type>(f),
            .d = elements<typename Op::value_type>(f),
            .m = 16,
            .n = 5,
            .k = 32,
            .trans_a = transpose::yes};
}

/// Scales, and C and a bias of their types, of a product of fp8.
template <class Op>
void check_fp8()
{
    CAPTURE(info_of<Op>().name);
    using D = typename Op::value_type;
    using C = typename Op::addend_type;
    test::blas_fixture f;
    auto op = fp8_product<Op>(f);
    auto p = call_of(f, op);
    check_layout(p.a, type_of<typename Op::source_type>(), 32, 16, 32);
    check_layout(p.b, type_of<typename Op::second_type>(), 32, 5, 32);
    check_layout(p.d, type_of<D>(), 16, 5, 16);
    check_layout(p.c, type_of<C>(), 16, 5, 16);
    // A result of fp8 is no C.
    CHECK(p.c_address == (blas::float8_element<D> ? nullptr : p.d_address));
    CHECK(p.how.compute == CUBLAS_COMPUTE_32F);
    CHECK(p.how.scale_type == CUDA_R_32F);
    CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER));
    CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER));

    const auto scales = elements<float>(f);
    op.scale_a = scales.subspan(1, 1);
    p = call_of(f, op);
    CHECK(address(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) == place(f, scales.subspan(1, 1)));
    CHECK(address(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) == nullptr);
    op.scale_a = {};
    op.scale_b = scales.subspan(2, 1);
    // The plan of the other product is used, but not with its scale.
    p = call_of(f, op);
    CHECK(p.choice == 2);
    CHECK(address(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) == nullptr);
    CHECK(address(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) == place(f, scales.subspan(2, 1)));

    const auto bias = elements<typename Op::bias_type>(f);
    const auto c = elements<C>(f);
    op.bias = bias.subspan(3, 16);
    op.c = c;
    op.beta = 1;
    op.activation = activation::gelu;
    p = call_of(f, op);
    CHECK(epilogue(p) == CUBLASLT_EPILOGUE_GELU_BIAS);
    CHECK(address(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER) == place(f, bias.subspan(3, 16)));
    CHECK(number(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) == type_of<typename Op::bias_type>());
    CHECK(p.c_address == place(f, c));

    CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER));
    CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER));
    if constexpr (blas::float8_element<D>) {
        op.scale_d = scales.subspan(4, 1);
        p = call_of(f, op);
        CHECK(address(p, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER) == place(f, scales.subspan(4, 1)));
        CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER));
        op.amax_d = scales.subspan(5, 1);
        p = call_of(f, op);
        CHECK(address(p, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER) == place(f, scales.subspan(4, 1)));
        CHECK(address(p, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER) == place(f, scales.subspan(5, 1)));
        op.scale_d = {};
        p = call_of(f, op);
        CHECK_FALSE(p.how.attributes.has(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER));
        CHECK(address(p, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER) == place(f, scales.subspan(5, 1)));
    }
}

template <op... Ops>
void check_all_fp8(type_list<Ops...>)
{
    (check_fp8<Ops>(), ...);
}

} // namespace

TEST_SUITE_BEGIN("calls of cuBLASLt with fp8");

TEST_CASE("products of fp8, with every result and every optional operand")
{
    check_all_fp8(blas::matmul_for<float8_e4m3>{});
    check_all_fp8(blas::matmul_for<float8_e5m2>{});
}

TEST_CASE("in row-major order the scales of the factors change places")
{
    test::blas_fixture f;
    using op_type = blas::matmul<float8_e4m3, float8_e4m3, float8_e5m2>;
    const auto scales = elements<float>(f);
    op_type op{.a = elements<float8_e4m3>(f),
               .b = elements<float8_e5m2>(f),
               .d = elements<float8_e4m3>(f),
               .scale_a = scales.subspan(1, 1),
               .scale_b = scales.subspan(2, 1),
               .scale_d = scales.subspan(3, 1),
               .amax_d = scales.subspan(4, 1),
               .m = 5,
               .n = 16,
               .k = 32,
               .trans_b = transpose::yes,
               .order = blas::order::row_major};
    const auto p = call_of(f, op);
    check_layout(p.a, CUDA_R_8F_E5M2, 32, 16, 32);
    check_layout(p.b, CUDA_R_8F_E4M3, 32, 5, 32);
    check_layout(p.d, CUDA_R_8F_E4M3, 16, 5, 16);
    CHECK(p.a_address == place_of(f, op.b));
    CHECK(p.b_address == place_of(f, op.a));
    CHECK(address(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) == place(f, scales.subspan(2, 1)));
    CHECK(address(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) == place(f, scales.subspan(1, 1)));
    CHECK(address(p, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER) == place(f, scales.subspan(3, 1)));
    CHECK(address(p, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER) == place(f, scales.subspan(4, 1)));
}

#if CUBLAS_VERSION >= 120900
TEST_CASE("a scale for each row of A and each column of B")
{
    constexpr std::int32_t vector = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    test::blas_fixture f;
    const auto scales = elements<float>(f);
    auto op = fp8_product<blas::matmul<float8_e4m3>>(f);
    CHECK_FALSE(call_of(f, op).how.attributes.has(CUBLASLT_MATMUL_DESC_A_SCALE_MODE));
    op.scale_a = scales.subspan(0, 16);
    op.scale_b = scales.subspan(16, 5);
    auto p = call_of(f, op);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_A_SCALE_MODE) == vector);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_B_SCALE_MODE) == vector);
    CHECK(address(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) == place(f, scales));
    CHECK(address(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) == place(f, scales.subspan(16, 5)));
    // A matrix of one column has one scale for it.
    op.n = 1;
    op.scale_b = scales.subspan(16, 1);
    p = call_of(f, op);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_A_SCALE_MODE) == vector);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_B_SCALE_MODE) == vector);
    op = {.a = op.a,
          .b = op.b,
          .d = op.d,
          .scale_a = scales.subspan(0, 5),
          .scale_b = scales.subspan(5, 16),
          .m = 5,
          .n = 16,
          .k = 32,
          .trans_b = transpose::yes,
          .order = blas::order::row_major};
    p = call_of(f, op);
    CHECK(address(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) == place(f, scales.subspan(5, 16)));
    CHECK(address(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) == place(f, scales));
}
#endif

namespace {

test::fake_cuda::settings with_capability(int major, int minor)
{
    return {.attributes = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major},
                           {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor}}};
}

} // namespace

TEST_CASE("a GPU without fp8 refuses it")
{
    // An A100.
    test::blas_fixture f({}, with_capability(8, 0));
    const auto op = fp8_product<blas::matmul<float8_e4m3, float>>(f);
    const auto ec = f.run(op);
    CHECK(ec == errc::unsupported_op);
    CHECK(ec.message() == "blas.matmul<f32 from f8_e4m3>: the GPU has compute capability 8.0, fp8 needs 8.9");
    tuning reply;
    CHECK(f.run(tune<blas::matmul<float8_e4m3, float>>{op}, &reply) == errc::unsupported_op);
    CHECK(f.lt.products().empty());
}

TEST_CASE("a GPU without scales for each row refuses them")
{
    // An L40.
    test::blas_fixture f({}, with_capability(8, 9));
    auto op = fp8_product<blas::matmul<float8_e4m3, float, float8_e5m2>>(f);
    CHECK_FALSE(f.run(op));
    const auto scales = elements<float>(f);
    op.scale_a = scales.subspan(0, 16);
    op.scale_b = scales.subspan(16, 5);
    const auto ec = f.run(op);
    CHECK(ec == errc::unsupported_op);
    CHECK(ec.message() == "blas.matmul<f32 from f8_e4m3 and f8_e5m2>: the GPU has compute capability 8.9, fp8 with a "
                          "scale for each row needs 9.0");
    CHECK(f.lt.products().size() == 1);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_lt_fp8_calls
