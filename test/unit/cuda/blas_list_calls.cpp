#include "blas_calls.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/driver/error.hpp"
#include "cuda_world.hpp"
#include "support/address_kernel.hpp"
#include "support/plan_context.hpp"

#include <thread>
#include <utility>
#include <vector>

namespace test_cuda_blas_list_calls {

// Products of matrices in any buffers.
namespace {

using namespace coaccel;
using blas::math;
using blas::transpose;
using test::blas_fixture;
using test::check_call;
using test::points_to;
using test::types_of;

struct list_fixture : blas_fixture {
    list_fixture() { test::add_address_kernel(gpu); }
};

template <class T>
ref<T> elements(blas_fixture& f)
{
    return f.upload(std::vector<T>(80, T(1)));
}

template <class T>
const void* place(const blas_fixture& f, const ref<T>& r)
{
    return static_cast<const T*>(f.buffers[r.raw().slot].first) + r.raw().offset;
}

/// The argument is a table of addresses in device memory.
struct table_of {
    std::vector<const void*> wanted;
};

void check_argument(const blas_fixture&, const test::blas_recorder::argument& got, const table_of& table)
{
    REQUIRE(got.address != nullptr);
    const auto* const first = static_cast<const void* const*>(got.address);
    CHECK(std::vector<const void*>(first, first + table.wanted.size()) == table.wanted);
}

/// The argument is an array in host memory.
struct array_of {
    std::vector<double> wanted;
};

void check_argument(const blas_fixture&, const test::blas_recorder::argument& got, const array_of& array)
{
    CHECK(got.values == array.wanted);
}

/// Three products of matrices in three buffers; the same A is used twice, and B and C are parts of their buffers, which
/// begin at multiples of 16 bytes.
template <class T>
struct three_products {
    explicit three_products(blas_fixture& f) : fixture(f) {}

    blas::gemm_batched<T> batched() const
    {
        blas::gemm_batched<T> op{.m = 3, .n = 5, .k = 4, .alpha = 2, .beta = 4, .ldc = 6};
        return op.add(a, b.subspan(8, 40), c.subspan(8, 30)).add(x, b, y).add(a, c.subspan(40, 31), z);
    }

    table_of first() const { return {{place(fixture, a), place(fixture, x), place(fixture, a)}}; }
    table_of second() const
    {
        return {{place(fixture, b.subspan(8, 40)), place(fixture, b), place(fixture, c.subspan(40, 31))}};
    }
    table_of results() const { return {{place(fixture, c.subspan(8, 30)), place(fixture, y), place(fixture, z)}}; }

    /// Products of different sizes.
    blas::gemm_grouped<T> grouped() const
    {
        blas::gemm_grouped<T> op;
        op.add({.a = a, .b = b.subspan(8, 40), .c = c.subspan(8, 30), .m = 3, .n = 5, .k = 4, .alpha = 2, .ldc = 6});
        op.add({.a = x,
                .b = b,
                .c = y,
                .m = 2,
                .n = 2,
                .k = 7,
                .alpha = 3,
                .beta = 5,
                .trans_a = transpose::conjugate,
                .trans_b = transpose::yes,
                .lda = 8,
                .ldb = 9});
        op.add({.a = a, .b = c.subspan(40, 31), .c = z, .m = 4, .n = 1, .k = 2, .alpha = 7, .beta = 6, .ldb = 77});
        return op;
    }

    blas_fixture& fixture;
    ref<T> a = elements<T>(fixture), b = elements<T>(fixture), c = elements<T>(fixture), x = elements<T>(fixture),
           y = elements<T>(fixture), z = elements<T>(fixture);
};

#define COACCEL_GEMM float, double, coaccel::half, bfloat16, std::complex<float>, std::complex<double>

} // namespace

TEST_SUITE_BEGIN("calls of cuBLAS, lists of products");

TEST_CASE_TEMPLATE("gemm_batched", T, COACCEL_GEMM)
{
    list_fixture f;
    const three_products<T> p(f);
    const auto types = types_of<T>();
    constexpr auto function = "cublasGemmBatchedEx";
    check_call(f, p.batched(), function, CUBLAS_OP_N, CUBLAS_OP_N, 3, 5, 4, points_to{2}, p.first(), types.element, 3,
               p.second(), types.element, 4, points_to{4}, p.results(), types.element, 6, 3, types.standard,
               CUBLAS_GEMM_DEFAULT);
    blas::gemm_batched<T> one{.m = 2,
                              .n = 1,
                              .k = 4,
                              .trans_a = transpose::yes,
                              .trans_b = transpose::conjugate,
                              .lda = 5,
                              .ldb = 3,
                              .ldc = 77,
                              .math = math::pedantic};
    one.add(p.x, p.y, p.z);
    check_call(f, one, function, CUBLAS_OP_T, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, 2, 1, 4,
               points_to{1}, table_of{{place(f, p.x)}}, types.element, 5, table_of{{place(f, p.y)}}, types.element, 3,
               points_to{0}, table_of{{place(f, p.z)}}, types.element, 2, 1, types.pedantic, CUBLAS_GEMM_DEFAULT);
}

TEST_CASE_TEMPLATE("factors that are multiplied by zero are not read", T, COACCEL_GEMM)
{
    list_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f), c = elements<T>(f);
    blas::gemm_batched<T> op{.m = 3, .n = 5, .k = 4, .alpha = 0, .beta = 4, .ldc = 6};
    test::check_scaling(f, op.add(a, b, c), test::scaled_matrix<T>{c, 3, 5, 6, 4});
    blas::gemm_grouped<T> other;
    other.add({.a = a, .b = b, .c = c, .m = 3, .n = 5, .k = 4, .alpha = 0});
    test::check_scaling(f, other, test::scaled_matrix<T>{c, 3, 5, 3, 0});
    CHECK(f.gpu.calls("cuLaunchKernel") == 0);
}

namespace {

/// Runs lists of two products, of which the second one has a B that starts at this element. Returns how many calls
/// compute one product each: 4, or 0 if each list is one call.
template <class T>
std::size_t single_products(math how, std::size_t first)
{
    list_fixture f;
    f.blas.record_gemm();
    const auto a = elements<T>(f), b = elements<T>(f), x = elements<T>(f), y = elements<T>(f);
    blas::gemm_batched<T> op{.m = 4, .n = 4, .k = 4, .math = how};
    REQUIRE_FALSE(f.run(op.add(a, b, x).add(a, b.subspan(first, 16), y)));
    blas::gemm_grouped<T> grouped{.math = how};
    grouped.add({.a = a, .b = b, .c = x, .m = 4, .n = 4, .k = 4});
    grouped.add({.a = a, .b = b.subspan(first, 16), .c = y, .m = 4, .n = 4, .k = 4});
    REQUIRE_FALSE(f.run(grouped));
    return f.blas.calls("cublasGemmEx").size();
}

} // namespace

TEST_CASE("products for tensor cores of matrices that are not aligned to 16 bytes run one by one")
{
    for (const math how : {math::standard, math::pedantic}) {
        CHECK(single_products<coaccel::half>(how, 7) == 4);
        CHECK(single_products<bfloat16>(how, 4) == 4);
        CHECK(single_products<float>(how, 1) == 0);
    }
    CHECK(single_products<coaccel::half>(math::standard, 8) == 0);
    CHECK(single_products<float>(math::tf32, 4) == 0);
    CHECK(single_products<float>(math::tf32, 2) == 4);
}

TEST_CASE("a list has at most 32 products")
{
    list_fixture f;
    const auto a = elements<float>(f), b = elements<float>(f), c = elements<float>(f);
    blas::gemm_batched<float> op{.m = 1, .n = 1, .k = 1};
    std::vector<const void*> first, second, results;
    for (std::uint64_t i = 0; i < blas::most_products; ++i) {
        op.add(a.subspan(i, 1), b.subspan(63 - i, 1), c.subspan(2 * i, 1));
        first.push_back(place(f, a.subspan(i, 1)));
        second.push_back(place(f, b.subspan(63 - i, 1)));
        results.push_back(place(f, c.subspan(2 * i, 1)));
    }
    check_call(f, op, "cublasGemmBatchedEx", CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, points_to{1}, table_of{first},
               CUDA_R_32F, 1, table_of{second}, CUDA_R_32F, 1, points_to{0}, table_of{results}, CUDA_R_32F, 1, 32,
               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    // One launch computes all tables.
    CHECK(f.gpu.calls("cuLaunchKernel") == 1);
}

TEST_CASE("factors of gemm_batched that are parameters of a plan are read from device memory")
{
    list_fixture f;
    const three_products<double> p(f);
    const auto factors = f.upload<double>({2, 3});
    const auto op = p.batched();
    const auto here = f.b->enter();
    bound_op o = f.bind(op);
    const auto* const at = static_cast<const double*>(place(f, factors));
    const scalar_address scalars[] = {{offsetof(blas::gemm_batched<double>, alpha), at},
                                      {offsetof(blas::gemm_batched<double>, beta), at + 1}};
    o.scalars = scalars;
    REQUIRE_FALSE(f.repeat_until_answered([&] { return test::try_start(*f.b, *f.lane, o); }));
    REQUIRE_FALSE(f.finish_stream());
    const auto call = f.blas.last_call();
    CHECK(f.blas.calls("cublasGemmBatchedEx").at(0).pointers == CUBLAS_POINTER_MODE_DEVICE);
    CHECK(f.blas.calls("cublasGemmBatchedEx").at(0).arguments[5].address == at);
    CHECK(f.blas.calls("cublasGemmBatchedEx").at(0).arguments[12].address == at + 1);
    CHECK(f.blas.last().pointers == CUBLAS_POINTER_MODE_HOST);
}

namespace {

/// Each product of three_products::grouped as a call of its own.
template <class T>
void check_calls_one_by_one(list_fixture& f, math how)
{
    f.blas.record_gemm();
    const three_products<T> p(f);
    const auto types = types_of<T>();
    auto op = p.grouped();
    op.math = how;
    const auto before = f.blas.calls("cublasGemmEx").size();
    REQUIRE_FALSE(f.run(op));
    CHECK(f.blas.calls("cublasGemmGroupedBatchedEx").empty());
    const auto calls = f.blas.calls("cublasGemmEx");
    REQUIRE(calls.size() == before + 3);
    const auto check = [&](std::size_t i, const auto&... wanted) {
        CAPTURE(i);
        const auto& got = calls[before + i].arguments;
        REQUIRE(got.size() == sizeof...(wanted));
        std::size_t at = 0;
        const auto check_one = [&](const auto& one) {
            CAPTURE(at);
            using test::check_argument;
            check_argument(f, got[at], one);
            ++at;
        };
        (check_one(wanted), ...);
    };
    const auto compute = how == math::pedantic ? types.pedantic : types.standard;
    check(0, CUBLAS_OP_N, CUBLAS_OP_N, 3, 5, 4, points_to{2}, p.a, types.element, 3, p.b.subspan(8, 40), types.element,
          4, points_to{0}, p.c.subspan(8, 30), types.element, 6, compute, CUBLAS_GEMM_DEFAULT);
    check(1, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, CUBLAS_OP_T, 2, 2, 7, points_to{3}, p.x,
          types.element, 8, p.b, types.element, 9, points_to{5}, p.y, types.element, 2, compute, CUBLAS_GEMM_DEFAULT);
    check(2, CUBLAS_OP_N, CUBLAS_OP_N, 4, 1, 2, points_to{7}, p.a, types.element, 4, p.c.subspan(40, 31), types.element,
          2, points_to{6}, p.z, types.element, 4, compute, CUBLAS_GEMM_DEFAULT);
    // No table is needed.
    CHECK(f.gpu.calls("cuLaunchKernel") == 0);
}

} // namespace

#if CUBLAS_VERSION >= 120500
TEST_CASE_TEMPLATE("gemm_grouped is one call for real numbers", T, float, double, coaccel::half, bfloat16)
{
    list_fixture f;
    const three_products<T> p(f);
    const auto types = types_of<T>();
    constexpr double no = CUBLAS_OP_N, yes = CUBLAS_OP_T;
    const auto check = [&](math how, cublasComputeType_t compute) {
        auto op = p.grouped();
        op.math = how;
        check_call(f, op, "cublasGemmGroupedBatchedEx", array_of{{no, yes, no}}, array_of{{no, yes, no}},
                   array_of{{3, 2, 4}}, array_of{{5, 2, 1}}, array_of{{4, 7, 2}}, array_of{{2, 3, 7}}, p.first(),
                   types.element, array_of{{3, 8, 4}}, p.second(), types.element, array_of{{4, 9, 2}},
                   array_of{{0, 5, 6}}, p.results(), types.element, array_of{{6, 2, 4}}, 3, array_of{{1, 1, 1}},
                   compute);
    };
    check(math::standard, types.standard);
    check(math::tf32, types.tf32);
    if constexpr (std::is_same_v<T, float>)
        check(math::pedantic, types.pedantic);
    CHECK(f.blas.calls("cublasGemmGroupedBatchedEx").front().thread != std::this_thread::get_id());
    CHECK(f.blas.calls("gemm").empty());
}
#endif

TEST_CASE_TEMPLATE("products of complex numbers run one by one", T, std::complex<float>, std::complex<double>)
{
    list_fixture f;
    check_calls_one_by_one<T>(f, math::standard);
    check_calls_one_by_one<T>(f, math::pedantic);
}

TEST_CASE_TEMPLATE("pedantic products of other types than f32 run one by one", T, double, coaccel::half, bfloat16)
{
    list_fixture f;
    check_calls_one_by_one<T>(f, math::pedantic);
}

#if CUBLAS_VERSION >= 120500
TEST_CASE_TEMPLATE("with a cuBLAS without grouped products, they run one by one", T, float, double, coaccel::half,
                   bfloat16)
{
    list_fixture f;
    f.blas.api.cublasGemmGroupedBatchedEx_64 = nullptr;
    check_calls_one_by_one<T>(f, math::standard);
}
#endif

TEST_CASE("after a product that fails, the others are not computed")
{
    list_fixture f;
    f.blas.record_gemm();
    const auto op = three_products<std::complex<float>>(f).grouped();
    f.blas.fail("cublasGemmEx", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(op) == cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
    CHECK(f.blas.calls("cublasGemmEx").size() == 1);
    CHECK_FALSE(f.run(op));
    CHECK(f.blas.calls("cublasGemmEx").size() == 4);
}

TEST_CASE("an error of cuBLAS fails its op")
{
    list_fixture f;
    const three_products<float> p(f);
    f.blas.fail("cublasGemmBatchedEx", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(p.batched()) == cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
    CHECK_FALSE(f.run(p.batched()));
}

TEST_CASE("without its tables, cuBLAS is not called, and the next op works")
{
    struct row {
        const char* function;
        CUresult status;
    };
    constexpr row rows[] = {{"cuModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY},
                            {"cuModuleGetFunction", CUDA_ERROR_NOT_FOUND},
                            {"cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES}};
    for (const auto& r : rows) {
        CAPTURE(r.function);
        list_fixture f;
        const auto op = three_products<float>(f).batched();
        f.gpu.fail(r.function, r.status, 1);
        CHECK(f.run(op) == cuda::make_error(r.status));
        CHECK(f.blas.calls("cublasGemmBatchedEx").empty());
        CHECK_FALSE(f.run(op));
        CHECK(f.blas.calls("cublasGemmBatchedEx").size() == 1);
    }
}

TEST_CASE("a list counts its products as commands")
{
    list_fixture f;
    const auto commands = [&f](const auto& op) {
        bound_op o = f.bind(op);
        REQUIRE_FALSE(f.b->find_code(o));
        return cuda::backend::commands_of(o);
    };
    const three_products<float> p(f);
    // The tables, and one product of all matrices.
    CHECK(commands(p.batched()) == 2);
    // cuBLAS may launch a kernel for each group.
    CHECK(commands(p.grouped()) == 5);
    // Without tables.
    auto scaled = p.batched();
    scaled.alpha = 0;
    CHECK(commands(scaled) == 3);
}

TEST_CASE("another thread makes the first call of a kind, and the caller makes later calls")
{
    list_fixture f;
    const three_products<float> p(f);
    const auto on_this_thread = [&](const auto& op) {
        REQUIRE_FALSE(f.run(op));
        return f.blas.last_call().thread == std::this_thread::get_id();
    };
    CHECK_FALSE(on_this_thread(p.batched()));
    CHECK(on_this_thread(p.batched()));
    CHECK_FALSE(on_this_thread(p.grouped()));
    CHECK(on_this_thread(p.grouped()));
    auto other = p.grouped();
    other.k[1] = 1;
    CHECK_FALSE(on_this_thread(other));
    // cuBLAS chooses other kernels for columns that are aligned differently.
    other = p.grouped();
    other.lda[1] = 9;
    CHECK_FALSE(on_this_thread(other));
}

TEST_CASE("a plan computes the tables of its products in each run")
{
    test::cuda_world w;
    test::add_address_kernel(w.driver);
    test::context_driver d(w);
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, 4);
    const auto factor = m.floats(slot_kind::parameter, 1);
    const auto a = m.floats(slot_kind::constant, 8);
    const auto beta = m.floats(slot_kind::constant, 1);
    const auto y = m.floats(slot_kind::output, 2), z = m.floats(slot_kind::output, 2);
    blas::gemm_batched<float> op{.m = 2, .n = 1, .k = 2};
    op.add(a.subspan(0, 4), x.subspan(0, 2), z).add(a.subspan(4, 4), x.subspan(2, 2), y);
    m.add(op);
    m.bind(&blas::gemm_batched<float>::alpha, factor).bind(&blas::gemm_batched<float>::beta, beta);
    const auto data = m.finish();
    test::test_instance i(d, data, 1, 1);
    i.set(i.first_constant(), {1, 2, 3, 4, 5, 6, 7, 8});
    i.set(i.first_constant() + 1, {0});
    REQUIRE_FALSE(i.load());
    CHECK(i.recorded);
    const int calls = w.blas.calls("cublasGemmBatchedEx");
    for (const float by : {1.0F, -2.0F}) {
        test::plan_run r(i, {{1, 10, 100, 1000}, {by}});
        CHECK_FALSE(d.outcome_of(*r.request));
        CHECK(r.outputs[0] == std::vector<float>{by * 7500, by * 8600});
        CHECK(r.outputs[1] == std::vector<float>{by * 31, by * 42});
    }
    CHECK(w.blas.calls("cublasGemmBatchedEx") == calls);
    CHECK_FALSE(i.unload());
}

#undef COACCEL_GEMM

TEST_SUITE_END();

} // namespace test_cuda_blas_list_calls
