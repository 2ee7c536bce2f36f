#include "blas_calls.hpp"

namespace test_cuda_blas_level1_calls {

namespace {

using namespace coaccel;
using test::blas_fixture;
using test::check_call;
using test::letter;
using test::points_to;

template <class T>
ref<T> elements(blas_fixture& f)
{
    return f.upload(std::vector<T>(64, T(1)));
}

/// Runs an op with a reply, and checks the arguments before the result.
template <class Op, class... Wanted>
void check_reduction(blas_fixture& f, const Op& op, const std::string& function, const Wanted&... wanted)
{
    CAPTURE(function);
    typename Op::reply reply{};
    REQUIRE_FALSE(f.run(op, &reply));
    const auto calls = f.blas.calls(function);
    REQUIRE(calls.size() == 1);
    // In host pointer mode the call would wait for the device.
    CHECK(calls[0].pointers == CUBLAS_POINTER_MODE_DEVICE);
    REQUIRE(calls[0].arguments.size() == sizeof...(wanted) + 1);
    std::size_t i = 0;
    (check_argument(f, calls[0].arguments[i++], wanted), ...);
}

} // namespace

TEST_SUITE_BEGIN("calls of cuBLAS, level 1");

TEST_CASE_TEMPLATE("axpy, scal, copy and swap", T, double, std::complex<float>, std::complex<double>)
{
    blas_fixture f;
    const auto x = elements<T>(f), y = elements<T>(f);
    const auto prefix = "cublas" + letter<T>();
    check_call(f, blas::axpy<T>{.x = x, .y = y, .n = 3, .alpha = T(2), .incx = -2, .incy = 3}, prefix + "axpy", 3,
               points_to{2}, x, -2, y, 3);
    check_call(f, blas::scal<T>{.x = x, .n = 3, .alpha = T(2), .incx = -2}, prefix + "scal", 3, points_to{2}, x, 2);
    check_call(f, blas::copy<T>{.x = x, .y = y, .n = 3, .incx = -2, .incy = 3}, prefix + "copy", 3, x, -2, y, 3);
    check_call(f, blas::swap<T>{.x = x, .y = y, .n = 3, .incx = 2, .incy = -3}, prefix + "swap", 3, x, 2, y, -3);
}

TEST_CASE_TEMPLATE("rot", T, float, double, std::complex<float>, std::complex<double>)
{
    blas_fixture f;
    const auto x = elements<T>(f), y = elements<T>(f);
    check_call(f, blas::rot<T>{.x = x, .y = y, .n = 3, .c = 2, .s = T(4), .incx = -2, .incy = 3},
               "cublas" + letter<T>() + "rot", 3, x, -2, y, 3, points_to{2}, points_to{4});
}

TEST_CASE_TEMPLATE("rotg leaves its results on the device", T, float, double, std::complex<float>, std::complex<double>)
{
    blas_fixture f;
    const auto a = f.upload(std::vector<T>{1}), b = f.upload(std::vector<T>{1}), s = f.upload(std::vector<T>{1});
    const auto c = f.upload(std::vector<blas::real_part<T>>{1});
    REQUIRE_FALSE(f.run(blas::rotg<T>{.a = a, .b = b, .c = c, .s = s}));
    const auto calls = f.blas.calls("cublas" + letter<T>() + "rotg");
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].pointers == CUBLAS_POINTER_MODE_DEVICE);
    REQUIRE(calls[0].arguments.size() == 4);
    check_argument(f, calls[0].arguments[0], a);
    check_argument(f, calls[0].arguments[1], b);
    check_argument(f, calls[0].arguments[2], c);
    check_argument(f, calls[0].arguments[3], s);
    CHECK(f.blas.last().pointers == CUBLAS_POINTER_MODE_HOST);
}

TEST_CASE_TEMPLATE("dotu, dotc, nrm2 and asum of complex vectors", T, std::complex<float>, std::complex<double>)
{
    blas_fixture f;
    const auto x = elements<T>(f), y = elements<T>(f);
    const auto prefix = "cublas" + letter<T>();
    const std::string mixed = sizeof(T) == 8 ? "cublasSc" : "cublasDz";
    check_reduction(f, blas::dotu<T>{.x = x, .y = y, .n = 3, .incx = -2, .incy = 3}, prefix + "dotu", 3, x, -2, y, 3);
    check_reduction(f, blas::dotc<T>{.x = x, .y = y, .n = 3, .incx = 2, .incy = -3}, prefix + "dotc", 3, x, 2, y, -3);
    check_reduction(f, blas::nrm2<T>{.x = x, .n = 3, .incx = -2}, mixed + "nrm2", 3, x, 2);
    check_reduction(f, blas::asum<T>{.x = x, .n = 3, .incx = -2}, mixed + "asum", 3, x, 2);
}

TEST_CASE_TEMPLATE("iamax and iamin", T, double, std::complex<float>, std::complex<double>)
{
    blas_fixture f;
    const auto x = elements<T>(f);
    const std::string prefix = std::is_same_v<T, double> ? "cublasId" : sizeof(T) == 8 ? "cublasIc" : "cublasIz";
    check_reduction(f, blas::iamax<T>{.x = x, .n = 3, .incx = 2}, prefix + "amax", 3, x, 2);
    check_reduction(f, blas::iamin<T>{.x = x, .n = 3, .incx = 2}, prefix + "amin", 3, x, 2);
    // The vector is reversed first.
    std::uint64_t at = 0;
    REQUIRE_FALSE(f.run(blas::iamin<T>{.x = x, .n = 3, .incx = -2}, &at));
    const auto copies = f.blas.calls("cublas" + letter<T>() + "copy");
    const auto searches = f.blas.calls(prefix + "amin");
    REQUIRE(copies.size() == 1);
    REQUIRE(searches.size() == 2);
    CHECK(copies[0].arguments[2].number == -2);
    CHECK(copies[0].arguments[4].number == 1);
    CHECK(searches[1].arguments[1].address == copies[0].arguments[3].address);
    CHECK(searches[1].arguments[2].number == 1);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_level1_calls
