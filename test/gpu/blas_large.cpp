#include "gpu.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

// Large symmetric and triangular matrices, compared with products of general ones. Small ones, against a reference, are
// in test/unit/ops.
namespace {

using namespace coaccel;
using blas::transpose;
using test::device_fixture;
using test::gpu_fixture;

template <class T>
T random_number(std::mt19937& random)
{
    std::uniform_real_distribution<blas::real_part<T>> numbers(-1, 1);
    if constexpr (blas::complex_element<T>)
        return {numbers(random), numbers(random)};
    else
        return numbers(random);
}

template <class T>
std::vector<T> random_matrix(std::mt19937& random, std::size_t rows, std::size_t columns)
{
    std::vector<T> made(rows * columns);
    for (auto& x : made)
        x = random_number<T>(random);
    return made;
}

/// The greatest distance of two matrices, in units of the last place of a sum of k products.
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b, std::size_t k)
{
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
    return most / (static_cast<double>(std::numeric_limits<blas::real_part<T>>::epsilon()) * static_cast<double>(k));
}

template <class Op>
void run(device_fixture& f, const Op& op)
{
    const auto done = test::exec_listed(f, op);
    REQUIRE_MESSAGE(done, done.error().message());
}

constexpr std::size_t m = 513;
constexpr std::size_t n = 700;

} // namespace

TEST_SUITE_BEGIN("large matrices on a GPU");

TEST_CASE_TEMPLATE("symm and syrk agree with gemm", T, float, double, std::complex<float>, std::complex<double>)
{
    gpu_fixture f;
    std::mt19937 random(1);
    auto a = random_matrix<T>(random, m, m);
    for (std::size_t j = 0; j < m; ++j)
        for (std::size_t i = 0; i < j; ++i)
            a[i + j * m] = a[j + i * m];
    const auto da = f.upload(a);
    const auto b = f.upload(random_matrix<T>(random, m, n));
    const auto c = f.upload(std::vector<T>(m * n));
    const auto d = f.upload(std::vector<T>(m * n));
    run(f, blas::symm<T>{.a = da, .b = b, .c = c, .m = m, .n = n});
    run(f, blas::gemm<T>{.a = da, .b = b, .c = d, .m = m, .n = n, .k = m});
    CHECK(distance(f.download(c), f.download(d), m) < 4);

    const auto square = f.upload(std::vector<T>(m * m));
    const auto lower = f.upload(std::vector<T>(m * m));
    run(f, blas::syrk<T>{.a = b, .c = lower, .n = m, .k = n});
    run(f, blas::gemm<T>{.a = b, .b = b, .c = square, .m = m, .n = m, .k = n, .trans_b = transpose::yes});
    auto expected = f.download(square);
    for (std::size_t j = 0; j < m; ++j)
        for (std::size_t i = 0; i < j; ++i)
            expected[i + j * m] = 0;
    CHECK(distance(f.download(lower), expected, n) < 4);
}

TEST_CASE_TEMPLATE("trsm undoes trmm, and geam transposes", T, float, double, std::complex<float>, std::complex<double>)
{
    gpu_fixture f;
    std::mt19937 random(2);
    // Well conditioned: the diagonal dominates.
    auto a = random_matrix<T>(random, m, m);
    for (auto& x : a)
        x /= static_cast<blas::real_part<T>>(m);
    for (std::size_t i = 0; i < m; ++i)
        a[i + i * m] = T(2);
    const auto b = random_matrix<T>(random, m, n);
    const auto da = f.upload(a);
    for (const auto trans : {transpose::no, transpose::yes, transpose::conjugate})
        for (const auto uplo : {blas::uplo::lower, blas::uplo::upper}) {
            const auto db = f.upload(b);
            run(f, blas::trmm<T>{.a = da, .b = db, .m = m, .n = n, .alpha = T(3), .uplo = uplo, .trans = trans});
            run(f, blas::trsm<T>{.a = da, .b = db, .m = m, .n = n, .alpha = T(1) / T(3), .uplo = uplo, .trans = trans});
            CHECK(distance(f.download(db), b, m) < 4);
        }
    const auto db = f.upload(b);
    const auto turned = f.upload(std::vector<T>(m * n));
    run(f, blas::geam<T>{
               .a = db, .b = db, .c = turned, .m = n, .n = m, .trans_a = transpose::yes, .trans_b = transpose::yes});
    const auto t = f.download(turned);
    std::size_t wrong = 0;
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < m; ++i)
            wrong += t[j + i * n] != b[i + j * m];
    CHECK(wrong == 0);
}

TEST_SUITE_END();
