#include "blas_calls.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/driver/error.hpp"
#include "support/address_kernel.hpp"

#include <cstdint>
#include <limits>
#include <thread>

namespace test_cuda_blas_batched_calls {

namespace {

using namespace coaccel;
using blas::diag;
using blas::side;
using blas::transpose;
using blas::uplo;
using test::blas_fixture;
using test::letter;
using test::points_to;

#define COACCEL_DENSE float, double, std::complex<float>, std::complex<double>

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

/// Argument `index` of the last call must be a table of the addresses of matrices that are this far apart.
struct table_of {
    const char* first;
    std::size_t step;
    std::size_t count;
};

struct batched_fixture : blas_fixture {
    batched_fixture() { test::add_address_kernel(gpu); }

    template <class T>
    table_of table(const ref<T>& operand, std::size_t stride, std::size_t count) const
    {
        return {static_cast<const char*>(buffers[operand.raw().slot].first) + operand.raw().offset * sizeof(T),
                stride * sizeof(T), count};
    }
};

/// The argument must point to copies of pivots, with these values.
struct copies_of {
    std::vector<std::int32_t> wanted;
};

void check_argument(const blas_fixture&, const test::blas_recorder::argument& got, const copies_of& pivots)
{
    REQUIRE(got.address != nullptr);
    const auto* const first = static_cast<const std::int32_t*>(got.address);
    CHECK(std::vector(first, first + pivots.wanted.size()) == pivots.wanted);
}

struct anything {};

void check_argument(const blas_fixture&, const test::blas_recorder::argument&, const anything&) {}

void check_argument(const blas_fixture&, const test::blas_recorder::argument& got, const table_of& wanted)
{
    REQUIRE(got.address != nullptr);
    const auto* const addresses = static_cast<const char* const*>(got.address);
    for (std::size_t i = 0; i < wanted.count; ++i)
        CHECK(static_cast<const void*>(addresses[i]) == static_cast<const void*>(wanted.first + i * wanted.step));
}

void check_argument(const blas_fixture&, const test::blas_recorder::argument& got, std::nullptr_t)
{
    CHECK(got.address == nullptr);
}

/// As test::check_call, also with tables.
template <class Op, class... Wanted>
void check_call(batched_fixture& f, const Op& op, const std::string& function, const Wanted&... wanted)
{
    CAPTURE(function);
    const auto ec = f.run(op);
    REQUIRE_MESSAGE(!ec, ec.message());
    const auto call = f.blas.last_call();
    CHECK(call.function == function);
    REQUIRE(call.arguments.size() == sizeof...(wanted));
    std::size_t i = 0;
    const auto check = [&](const auto& one) {
        CAPTURE(i);
        check_argument(f, call.arguments[i], one);
        ++i;
    };
    (check(wanted), ...);
}

template <class T>
ref<T> elements(batched_fixture& f)
{
    return f.upload(std::vector<T>(64, T(1)));
}

ref<std::int32_t> integers(batched_fixture& f, std::size_t count)
{
    return f.upload(std::vector<std::int32_t>(count));
}

} // namespace

TEST_SUITE_BEGIN("calls of cuBLAS, batches");

TEST_CASE_TEMPLATE("LU factorizations", T, COACCEL_DENSE)
{
    batched_fixture f;
    const auto a = elements<T>(f);
    const auto pivots = integers(f, 8), info = integers(f, 4);
    const auto function = "cublas" + letter<T>() + "getrfBatched";
    check_call(f,
               blas::getrf_batched<T>{.a = a.subspan(2, 40),
                                      .pivots = pivots.subspan(1, 6),
                                      .info = info.subspan(1, 3),
                                      .n = 2,
                                      .batch = 3,
                                      .stride_a = 7,
                                      .lda = 5},
               function, 2, f.table(a.subspan(2, 40), 7, 3), 5, pivots.subspan(1, 6), info.subspan(1, 3), 3);
    check_call(f, blas::getrf_nopivot_batched<T>{.a = a, .info = info.subspan(0, 2), .n = 3, .batch = 2, .stride_a = 9},
               function, 3, f.table(a, 9, 2), 3, nullptr, info.subspan(0, 2), 2);
    // The stride of a single matrix and the leading dimension of a single column have no meaning.
    check_call(f,
               blas::getrf_batched<T>{.a = a,
                                      .pivots = pivots.subspan(0, 1),
                                      .info = info.subspan(0, 1),
                                      .n = 1,
                                      .batch = 1,
                                      .stride_a = huge,
                                      .lda = huge},
               function, 1, f.table(a, 0, 1), 1, pivots.subspan(0, 1), info.subspan(0, 1), 1);
}

TEST_CASE_TEMPLATE("equations of factorized matrices", T, COACCEL_DENSE)
{
    batched_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f);
    const std::vector<std::int32_t> given{3, 1, 2, std::numeric_limits<std::int32_t>::max(), 0, -5};
    const auto pivots = f.upload(given);
    const auto function = "cublas" + letter<T>() + "getrsBatched";
    check_call(f,
               blas::getrs_batched<T>{.a = a,
                                      .pivots = pivots,
                                      .b = b,
                                      .n = 3,
                                      .nrhs = 2,
                                      .batch = 2,
                                      .stride_a = 20,
                                      .stride_b = 13,
                                      .trans = transpose::conjugate,
                                      .lda = 4,
                                      .ldb = 5},
               function, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, 3, 2, f.table(a, 20, 2), 4,
               copies_of{{3, 1, 2, 3, 1, 1}}, f.table(b, 13, 2), 5, anything{}, 2);
    CHECK(f.look(pivots) == given);
    check_call(
        f, blas::getrs_nopivot_batched<T>{.a = a, .b = b, .n = 3, .nrhs = 1, .batch = 4, .stride_b = 3, .ldb = huge},
        function, CUBLAS_OP_N, 3, 1, f.table(a, 0, 4), 3, nullptr, f.table(b, 3, 4), 3, anything{}, 4);
}

TEST_CASE_TEMPLATE("inverses", T, COACCEL_DENSE)
{
    batched_fixture f;
    const auto a = elements<T>(f), c = elements<T>(f);
    const std::vector<std::int32_t> given{-1, 4, 3, 2, 2, 3};
    const auto pivots = f.upload(given), info = integers(f, 2);
    const auto function = "cublas" + letter<T>() + "getriBatched";
    check_call(f,
               blas::getri_batched<T>{.a = a,
                                      .pivots = pivots,
                                      .c = c,
                                      .info = info,
                                      .n = 3,
                                      .batch = 2,
                                      .stride_a = 20,
                                      .stride_c = 30,
                                      .lda = 4,
                                      .ldc = 5},
               function, 3, f.table(a, 20, 2), 4, copies_of{{1, 3, 3, 2, 2, 3}}, f.table(c, 30, 2), 5, info, 2);
    CHECK(f.look(pivots) == given);
    check_call(
        f,
        blas::getri_nopivot_batched<T>{.a = a, .c = c, .info = info, .n = 3, .batch = 2, .stride_a = 9, .stride_c = 9},
        function, 3, f.table(a, 9, 2), 3, nullptr, f.table(c, 9, 2), 3, info, 2);
}

TEST_CASE_TEMPLATE("QR factorizations and least squares", T, COACCEL_DENSE)
{
    batched_fixture f;
    const auto a = elements<T>(f), c = elements<T>(f);
    const auto info = integers(f, 2);
    check_call(
        f, blas::geqrf_batched<T>{.a = a, .tau = c.subspan(3, 6), .m = 3, .n = 4, .batch = 2, .stride_a = 25, .lda = 5},
        "cublas" + letter<T>() + "geqrfBatched", 3, 4, f.table(a, 25, 2), 5, f.table(c.subspan(3, 6), 3, 2), anything{},
        2);
    check_call(f,
               blas::gels_batched<T>{.a = a,
                                     .c = c,
                                     .info = info,
                                     .m = 4,
                                     .n = 3,
                                     .nrhs = 2,
                                     .batch = 2,
                                     .stride_a = 21,
                                     .stride_c = 22,
                                     .lda = 6,
                                     .ldc = 7},
               "cublas" + letter<T>() + "gelsBatched", CUBLAS_OP_N, 4, 3, 2, f.table(a, 21, 2), 6, f.table(c, 22, 2), 7,
               anything{}, info, 2);
}

TEST_CASE_TEMPLATE("triangular equations", T, COACCEL_DENSE)
{
    batched_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f);
    const auto function = "cublas" + letter<T>() + "trsmBatched";
    check_call(f, blas::trsm_batched<T>{.a = a, .b = b, .m = 3, .n = 5, .batch = 3, .stride_b = 15, .alpha = T(2)},
               function, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 3, 5,
               points_to{2}, f.table(a, 0, 3), 3, f.table(b, 15, 3), 3, 3);
    check_call(f,
               blas::trsm_batched<T>{.a = a,
                                     .b = b,
                                     .m = 3,
                                     .n = 2,
                                     .batch = 2,
                                     .stride_a = 11,
                                     .stride_b = 17,
                                     .side = side::right,
                                     .uplo = uplo::upper,
                                     .trans = transpose::yes,
                                     .diag = diag::unit,
                                     .lda = 4,
                                     .ldb = 6},
               function, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_UNIT, 3, 2, points_to{1},
               f.table(a, 11, 2), 4, f.table(b, 17, 2), 6, 2);
    // With an alpha of zero, zeros are written without reading the operands, and without tables.
    const int launches = f.gpu.calls("cuLaunchKernel");
    test::check_scaling(
        f, blas::trsm_batched<T>{.a = a, .b = b, .m = 3, .n = 2, .batch = 2, .stride_b = 17, .alpha = 0, .ldb = 6},
        test::scaled_matrix<T>{.matrix = b, .rows = 3, .cols = 2, .ld = 6, .beta = 0, .stride = 17, .batch = 2});
    CHECK(f.gpu.calls("cuLaunchKernel") == launches);
}

namespace {

blas::getrf_nopivot_batched<float> factorization(batched_fixture& f, std::size_t batch)
{
    return {
        .a = f.upload(std::vector<float>(batch)), .info = integers(f, batch), .n = 1, .batch = batch, .stride_a = 1};
}

blas::getrs_batched<float> solution(batched_fixture& f, std::size_t batch)
{
    return {.a = f.upload(std::vector<float>(batch)),
            .pivots = integers(f, batch),
            .b = f.upload(std::vector<float>(batch)),
            .n = 1,
            .nrhs = 1,
            .batch = batch,
            .stride_a = 1,
            .stride_b = 1};
}

} // namespace

TEST_CASE("another thread loads the kernel, once, and the caller makes later calls")
{
    batched_fixture f;
    const auto op = factorization(f, 2);
    REQUIRE_FALSE(f.run(op));
    REQUIRE_FALSE(f.run(op));
    REQUIRE_FALSE(f.run(factorization(f, 700000)));
    const auto calls = f.blas.calls("cublasSgetrfBatched");
    REQUIRE(calls.size() == 3);
    CHECK(calls[0].thread != std::this_thread::get_id());
    CHECK(calls[1].thread == std::this_thread::get_id());
    CHECK(calls[2].thread != std::this_thread::get_id());
    CHECK(f.gpu.calls("cuModuleLoadData") == 1);
    CHECK(f.gpu.calls("cuLaunchKernel") == 3);
}

TEST_CASE("the tables of a lane stay, unless they are large")
{
    batched_fixture f;
    const auto small = factorization(f, 100), large = factorization(f, 200000);
    REQUIRE_FALSE(f.run(small));
    const auto before = f.memory().used;
    REQUIRE_FALSE(f.run(small));
    CHECK(f.memory().used == before);
    REQUIRE_FALSE(f.run(large));
    CHECK(f.memory().used < before);
    REQUIRE_FALSE(f.run(small));
    CHECK(f.memory().used == before);
}

TEST_CASE("failures before the call of cuBLAS fail their op, and the next one works")
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
        batched_fixture f;
        const auto op = factorization(f, 2);
        f.gpu.fail(r.function, r.status, 1);
        CHECK(f.run(op) == cuda::make_error(r.status));
        CHECK(f.blas.calls("cublasSgetrfBatched").empty());
        CHECK_FALSE(f.run(op));
        CHECK(f.blas.calls("cublasSgetrfBatched").size() == 1);
    }
}

TEST_CASE("without a copy of the pivots, cuBLAS is not called, and the next op works")
{
    struct row {
        const char* function;
        CUresult status;
    };
    constexpr row rows[] = {{"cuModuleGetFunction", CUDA_ERROR_NOT_FOUND},
                            {"cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES}};
    for (const auto& r : rows) {
        CAPTURE(r.function);
        batched_fixture f;
        const auto op = solution(f, 2);
        f.gpu.fail(r.function, r.status, 2);
        CHECK(f.run(op) == cuda::make_error(r.status));
        CHECK(f.blas.calls("cublasSgetrsBatched").empty());
        CHECK_FALSE(f.run(op));
        CHECK(f.blas.calls("cublasSgetrsBatched").size() == 1);
    }
}

TEST_CASE("an op counts each kernel as a command")
{
    batched_fixture f;
    const auto commands = [&f](const auto& op) {
        bound_op o = f.bind(op);
        REQUIRE_FALSE(f.b->find_code(o));
        return cuda::backend::commands_of(o);
    };
    CHECK(commands(factorization(f, 2)) == 2);
    // Tables, pivots, exchanges, and two times four for a block.
    CHECK(commands(solution(f, 2)) == 11);
    CHECK(commands(solution(f, 65535)) == 11);
    CHECK(commands(solution(f, 65536)) == 19);
    const auto a = f.upload(std::vector<float>(65 * 65));
    const blas::trsm_batched<float> equations{
        .a = a, .b = f.upload(std::vector<float>(130)), .m = 65, .n = 1, .batch = 2, .stride_b = 65};
    CHECK(commands(equations) == 9);
    const blas::trsm<float> equation{.a = a, .b = f.upload(std::vector<float>(65)), .m = 65, .n = 1};
    CHECK(commands(equation) == 8);
    const blas::gels_batched<float> squares{
        .a = a, .c = f.upload(std::vector<float>(65)), .info = integers(f, 1), .m = 65, .n = 64, .nrhs = 1, .batch = 1};
    CHECK(commands(squares) == 6);
}

TEST_CASE("another thread makes each call with many launches, so that the caller does not block in the driver")
{
    batched_fixture f;
    const auto a = f.upload(std::vector<float>(2560 * 2560)), b = f.upload(std::vector<float>(2560));
    const auto pivots = integers(f, 2560);
    const auto solve = [&](std::uint64_t n) {
        REQUIRE_FALSE(f.run(
            blas::getrs_batched<float>{.a = a, .pivots = pivots.subspan(0, n), .b = b, .n = n, .nrhs = 1, .batch = 1}));
        return f.blas.last_call().thread;
    };
    CHECK(solve(2560) != std::this_thread::get_id());
    CHECK(solve(2560) != std::this_thread::get_id());
    // The same kernels.
    CHECK(solve(2496) == std::this_thread::get_id());
}

TEST_CASE("LU factorizations of orders up to a power of two use the same kernels")
{
    batched_fixture f;
    const auto a = f.upload(std::vector<float>(33 * 33));
    const auto info = integers(f, 1);
    struct row {
        std::uint64_t n;
        bool is_new;
    };
    constexpr row rows[] = {{1, true},  {2, true},  {4, true},   {3, false}, {16, true},
                            {9, false}, {17, true}, {32, false}, {33, true}};
    for (const auto& r : rows) {
        CAPTURE(r.n);
        REQUIRE_FALSE(f.run(blas::getrf_nopivot_batched<float>{.a = a, .info = info, .n = r.n, .batch = 1}));
        CHECK((f.blas.last_call().thread != std::this_thread::get_id()) == r.is_new);
    }
}

TEST_CASE("there is room for the addresses and the pivots of an op")
{
    // As many addresses as in a factorization before, and pivots; the fake driver checks where the kernels write.
    batched_fixture f;
    REQUIRE_FALSE(f.run(factorization(f, 6)));
    for (const std::size_t batch : {1, 3, 1000}) {
        CAPTURE(batch);
        REQUIRE_FALSE(f.run(solution(f, batch)));
        check_argument(f, f.blas.last_call().arguments[5], copies_of{std::vector<std::int32_t>(batch, 1)});
    }
}

TEST_CASE("without memory for the tables, the op is refused")
{
    batched_fixture f;
    REQUIRE_FALSE(f.run(factorization(f, 2)));
    const auto op = factorization(f, 100000);
    // The first attempt may be followed by another one on the thread pool.
    f.gpu.fail_from("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(f.run(op) == errc::out_of_memory);
    f.gpu.forgive();
    CHECK_FALSE(f.run(op));
}

TEST_CASE("an error of cuBLAS fails its op")
{
    batched_fixture f;
    const auto op = factorization(f, 2);
    f.blas.fail("cublasSgetrfBatched", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(op) == cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
    CHECK_FALSE(f.run(op));
}

TEST_SUITE_END();

} // namespace test_cuda_blas_batched_calls
