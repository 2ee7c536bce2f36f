#include "blas_lt_calls.hpp"

namespace test_cuda_blas_lt_calls {

namespace {

using namespace coaccel;
using blas::activation;
using blas::math;
using blas::transpose;
using namespace test::lt_calls;

template <class T, class R>
void check_types()
{
    test::blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f);
    const auto d = elements<R>(f), bias = elements<R>(f);
    const blas::matmul<T, R> plain{
        .a = a, .b = b, .d = d, .m = 3, .n = 5, .k = 4, .trans_a = transpose::conjugate, .ldb = 6, .ldd = 7};
    auto p = call_of(f, plain);
    check_layout(p.a, type_of<T>(), 4, 3, 4);
    check_layout(p.b, type_of<T>(), 4, 5, 6);
    check_layout(p.d, type_of<R>(), 3, 5, 7);
    check_previous_d(p);
    CHECK(p.a_address == place(f, a));
    CHECK(p.b_address == place(f, b));
    CHECK(p.d_address == place(f, d));
    CHECK(p.how.compute == CUBLAS_COMPUTE_32F);
    CHECK(p.how.scale_type == CUDA_R_32F);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_N);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_HOST);
    CHECK(epilogue(p) == CUBLASLT_EPILOGUE_DEFAULT);
    for (const auto which :
         {CUBLASLT_MATMUL_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
          CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER})
        CHECK_FALSE(p.how.attributes.has(which));
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

    const blas::matmul<T, R> biased{.a = a, .b = b, .d = d, .bias = bias.subspan(2, 3), .m = 3, .n = 5, .k = 4};
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

    const auto c = elements<R>(f);
    auto added = biased;
    added.c = c.subspan(8, 300);
    added.beta = 2;
    added.ldc = 9;
    p = call_of(f, added);
    CHECK(p.c_address == place(f, c.subspan(8, 300)));
    check_layout(p.c, type_of<R>(), 3, 5, 9);
    CHECK(p.d_address == place(f, d));
    check_layout(p.d, type_of<R>(), 3, 5, 3);
}

/// A product whose matrices have five elements in a row of B and D.
template <class Op>
Op rows_of_five(test::blas_fixture& f)
{
    Op op{.a = elements<typename Op::source_type>(f),
          .b = elements<typename Op::second_type>(f),
          .d = elements<typename Op::value_type>(f),
          .m = 3,
          .n = 5,
          .k = 4};
    op.order = blas::order::row_major;
    return op;
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

TEST_CASE("C is added from its own matrix, and D is only written")
{
    test::blas_fixture f;
    const auto a = f.upload<float>({1, 2, 3, 4}), b = f.upload<float>({1, 10});
    const auto c = f.upload<float>({100, 200, 300, 400}), d = f.upload<float>({-1, -1});
    const auto bias = f.upload<float>({0.5F, -500});
    blas::matmul<float> op{.a = a, .b = b, .d = d, .c = c.subspan(1, 2), .m = 2, .n = 1, .k = 2, .beta = 2};
    REQUIRE_FALSE(f.run(op));
    CHECK(f.look(d) == std::vector<float>{31 + 400, 42 + 600});
    CHECK(f.look(c) == std::vector<float>{100, 200, 300, 400});
    op.bias = bias;
    op.activation = activation::relu;
    op.alpha = -1;
    REQUIRE_FALSE(f.run(op));
    CHECK(f.look(d) == std::vector<float>{400.5F - 31, 58});
    // Without C, the previous D takes its place.
    REQUIRE_FALSE(f.run(blas::matmul<float>{.a = a, .b = b, .d = d, .m = 2, .n = 1, .k = 2, .beta = 2}));
    CHECK(f.look(d) == std::vector<float>{2 * 369.5F + 31, 2 * 58 + 42});
    // C may be D, of which it has the strides and the leading dimension.
    REQUIRE_FALSE(f.run(blas::matmul<float>{.a = a, .b = b, .d = d, .c = d, .m = 2, .n = 1, .k = 2, .beta = 1}));
    CHECK(f.look(d) == std::vector<float>{2 * 369.5F + 62, 2 * 58 + 84});
}

TEST_CASE("strides of a batch")
{
    test::blas_fixture f;
    const auto a = elements<float>(f), b = elements<float>(f), c = elements<float>(f), d = elements<float>(f);
    blas::matmul<float> op{.a = a, .b = b, .d = d, .m = 2, .n = 3, .k = 4, .batch = 5, .stride_b = 13, .stride_d = 7};
    auto p = call_of(f, op);
    check_batch(p.a, 5, 0);
    check_batch(p.b, 5, 13);
    check_batch(p.c, 5, 7);
    check_batch(p.d, 5, 7);
    CHECK(f.look(d)[4 * 7] == 4);
    CHECK(f.look(d)[6] == 1);
    op.c = c;
    op.stride_c = 20;
    p = call_of(f, op);
    check_batch(p.c, 5, 20);
    check_batch(p.d, 5, 7);
    // One C for all products.
    op.stride_c = 0;
    check_batch(call_of(f, op).c, 5, 0);
    // Strides and leading dimensions without a meaning do not matter.
    constexpr auto huge = ~std::uint64_t(0);
    const auto one = call_of(f, blas::matmul<float>{.a = a,
                                                    .b = b,
                                                    .d = d,
                                                    .c = c,
                                                    .m = 2,
                                                    .n = 1,
                                                    .k = 1,
                                                    .stride_a = huge,
                                                    .stride_c = huge,
                                                    .lda = huge,
                                                    .ldc = huge,
                                                    .ldd = huge});
    CHECK(one.a.ld == 2);
    CHECK(one.c.ld == 2);
    CHECK(one.d.ld == 2);
    for (const auto* l : {&one.a, &one.b, &one.c, &one.d})
        CHECK_FALSE(l->attributes.has(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
}

TEST_CASE("in row-major order the factors change places")
{
    test::blas_fixture f;
    auto op = rows_of_five<blas::matmul<float>>(f);
    auto p = call_of(f, op);
    // A row is a column for cuBLASLt.
    check_layout(p.a, CUDA_R_32F, 5, 4, 5);
    check_layout(p.b, CUDA_R_32F, 4, 3, 4);
    check_layout(p.d, CUDA_R_32F, 5, 3, 5);
    check_previous_d(p);
    CHECK(p.a_address == place_of(f, op.b));
    CHECK(p.b_address == place_of(f, op.a));
    CHECK(p.d_address == place_of(f, op.d));
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_N);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_N);

    op.trans_a = transpose::yes;
    op.lda = 6;
    op.ldb = 7;
    op.ldd = 9;
    op.c = elements<float>(f).subspan(2, 100);
    op.ldc = 8;
    op.batch = 2;
    op.stride_a = 100;
    op.stride_b = 200;
    op.stride_c = 50;
    op.stride_d = 60;
    op.bias = elements<float>(f).subspan(4, 5);
    p = call_of(f, op);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_N);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T);
    CHECK(p.a.ld == 7);
    check_batch(p.a, 2, 200);
    CHECK(p.b.rows == 3);
    CHECK(p.b.cols == 4);
    CHECK(p.b.ld == 6);
    check_batch(p.b, 2, 100);
    CHECK(p.c_address == place_of(f, op.c));
    CHECK(p.c.ld == 8);
    check_batch(p.c, 2, 50);
    CHECK(p.d.ld == 9);
    check_batch(p.d, 2, 60);
    // One element for each column of D.
    CHECK(address(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER) == place_of(f, op.bias));
    op.trans_a = transpose::no;
    op.trans_b = transpose::conjugate;
    p = call_of(f, op);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T);
    CHECK(number(p, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_N);
}

TEST_CASE("a product in row-major order")
{
    test::blas_fixture f;
    const auto a = f.upload<float>({1, 2, 3, 4, 5, 6}), b = f.upload<float>({1, 10, 100});
    const auto bias = f.upload<float>({1000}), d = f.upload<float>({-1, -1, -1, -1});
    blas::matmul<float> op{.a = a, .b = b, .d = d, .bias = bias, .m = 2, .n = 1, .k = 3, .ldd = 3};
    op.order = blas::order::row_major;
    REQUIRE_FALSE(f.run(op));
    CHECK(f.look(d) == std::vector<float>{1321, -1, -1, 1654});
}

TEST_CASE("the choice knows the workspace and the alignment of the operands")
{
    cuda_options how;
    how.blas_workspace = 1 << 20;
    test::blas_fixture f(how);
    using T = coaccel::half;
    const auto a = elements<T>(f), b = elements<T>(f), c = elements<T>(f), d = elements<T>(f);
    blas::matmul<T> op{.a = a.subspan(1, 16), .b = b.subspan(24, 16), .d = d.subspan(32, 16), .m = 4, .n = 4, .k = 4};
    const auto alignment = [&f](cublasLtMatmulPreferenceAttributes_t of) {
        return f.lt.preferences().get<std::uint32_t>(of);
    };
    (void)call_of(f, op);
    const auto p = f.lt.preferences();
    CHECK(p.get<std::uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) == 1 << 20);
    CHECK(p.get<std::uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) == 2);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) == 16);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) == 64);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) == 64);
    CHECK(f.lt.wanted() == 1);
    op.c = c.subspan(4, 16);
    (void)call_of(f, op);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) == 8);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) == 64);
    // In row-major order that of B is the first one.
    op.order = blas::order::row_major;
    (void)call_of(f, op);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) == 16);
    CHECK(alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) == 2);
}

TEST_CASE("i8 is computed in i32")
{
    test::blas_fixture f;
    const auto a = elements<std::int8_t>(f), b = elements<std::int8_t>(f);
    const auto c = elements<std::int32_t>(f), d = elements<std::int32_t>(f);
    blas::matmul<std::int8_t> op{.a = a, .b = b, .d = d, .m = 4, .n = 5, .k = 8, .beta = 1, .trans_a = transpose::yes};
    auto p = call_of(f, op);
    check_layout(p.a, CUDA_R_8I, 8, 4, 8);
    check_layout(p.b, CUDA_R_8I, 8, 5, 8);
    check_layout(p.d, CUDA_R_32I, 4, 5, 4);
    check_previous_d(p);
    CHECK(p.how.compute == CUBLAS_COMPUTE_32I);
    CHECK(p.how.scale_type == CUDA_R_32I);
    op.c = c;
    op.math = math::pedantic;
    p = call_of(f, op);
    CHECK(p.c_address == place(f, c));
    CHECK(p.how.compute == CUBLAS_COMPUTE_32I_PEDANTIC);
    // A of the op is B of the product.
    op.order = blas::order::row_major;
    op.trans_a = transpose::no;
    op.trans_b = transpose::yes;
    op.m = 5;
    op.n = 4;
    p = call_of(f, op);
    CHECK(p.a_address == place(f, b));
    check_layout(p.a, CUDA_R_8I, 8, 4, 8);
    CHECK(p.b_address == place(f, a));
    check_layout(p.b, CUDA_R_8I, 8, 5, 8);
}

TEST_CASE("factors that are parameters of a plan are read from device memory")
{
    test::blas_fixture f;
    const auto a = f.upload<float>({3}), b = f.upload<float>({5}), d = f.upload<float>({7}),
               factors = f.upload<float>({2, 10});
    const blas::matmul<float> op{.a = a, .b = b, .d = d, .m = 1, .n = 1, .k = 1, .alpha = -1, .beta = -1};
    const auto* const in_memory = static_cast<const float*>(place(f, factors));
    const scalar_address scalars[] = {{offsetof(blas::matmul<float>, alpha), in_memory},
                                      {offsetof(blas::matmul<float>, beta), in_memory + 1}};
    REQUIRE_FALSE(f.run(op));
    CHECK(f.look(d)[0] == -22);
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
    CHECK(f.look(d)[0] == 2 * 15 + 10 * -22);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_lt_calls
