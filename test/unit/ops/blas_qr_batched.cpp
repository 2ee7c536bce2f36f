#include "support/batches.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/qr_batched.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <utility>

namespace test_ops_blas_qr_batched {

namespace {

using namespace coaccel;
using test::batch;
using test::device_fixture;
using test::engine;
using test::reference;
using test::times_q;
using test::tolerance;
using test::upper_of;

struct sides {
    std::size_t m, n;
};

constexpr sides every_size[] = {{1, 1}, {2, 1}, {1, 2}, {3, 3}, {7, 3}, {4, 9}, {17, 17}, {33, 20}};
constexpr std::int32_t unset = std::numeric_limits<std::int32_t>::min();

} // namespace

TEST_SUITE_BEGIN("blas QR of batches");

TEST_CASE_TEMPLATE("Q * R is A, and Q is unitary", T, float, double, std::complex<float>, std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto count : test::every_batch)
                for (const auto gaps : test::every_gap) {
                    const auto m = size.m, n = size.n;
                    INFO("m ", m, ", n ", n, ", batch ", count, ", gap ", gaps.ld);
                    const batch<T> a(m, n, count, gaps, random);
                    const std::size_t reflections = std::min(m, n);
                    const auto memory = f.upload(a.data);
                    const auto factors = f.upload(std::vector<T>(reflections * count + 2, test::poison<T>()));
                    REQUIRE(test::exec_listed(f, blas::geqrf_batched<T>{.a = a.in(memory),
                                                                        .tau = factors.subspan(1, reflections * count),
                                                                        .m = m,
                                                                        .n = n,
                                                                        .batch = count,
                                                                        .stride_a = a.stride_field(),
                                                                        .lda = a.ld_field()}));
                    const auto got = f.download(memory);
                    const auto tau = f.download(factors);
                    CHECK(a.gaps_remain(got));
                    CHECK(test::same_bits(tau.front(), test::poison<T>()));
                    CHECK(test::same_bits(tau.back(), test::poison<T>()));
                    for (std::size_t i = 0; i < count; ++i) {
                        const auto packed = a.matrix_of(got, i);
                        const T* const own = tau.data() + 1 + i * reflections;
                        const auto whole = a[i];
                        CHECK((times_q(packed, own, upper_of(packed)) - whole).norm() <=
                              tolerance<T>(m * reflections) * whole.norm());
                        const auto one = reference<T>::identity(m);
                        const auto q = times_q(packed, own, one);
                        CHECK((q.adjoint() * q - one).norm() <= tolerance<T>(m * reflections));
                    }
                }
    });
}

TEST_CASE_TEMPLATE("least squares solve the normal equations", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto count : test::every_batch)
                for (const auto gaps : test::every_gap)
                    for (const std::size_t nrhs : {1, 3}) {
                        const auto m = size.m, n = size.n;
                        if (m < n)
                            continue;
                        INFO("m ", m, ", n ", n, ", batch ", count, ", gap ", gaps.ld, ", nrhs ", nrhs);
                        batch<T> a(m, n, count, gaps, random);
                        for (std::size_t i = 0; i < count; ++i)
                            for (std::size_t j = 0; j < n; ++j)
                                a(i, j, j) += T(4);
                        const batch<T> c(m, nrhs, count, {gaps.stride, gaps.ld}, random);
                        const auto matrices = f.upload(a.data), right = f.upload(c.data);
                        const auto info = f.upload(std::vector<std::int32_t>(count, unset));
                        REQUIRE(test::exec_listed(f, blas::gels_batched<T>{.a = a.in(matrices),
                                                                           .c = c.in(right),
                                                                           .info = info,
                                                                           .m = m,
                                                                           .n = n,
                                                                           .nrhs = nrhs,
                                                                           .batch = count,
                                                                           .stride_a = a.stride_field(),
                                                                           .stride_c = c.stride_field(),
                                                                           .lda = a.ld_field(),
                                                                           .ldc = c.ld_field()}));
                        CHECK(a.gaps_remain(f.download(matrices)));
                        const auto got = f.download(right);
                        CHECK(c.gaps_remain(got));
                        CHECK(f.download(info) == std::vector<std::int32_t>(count));
                        for (std::size_t i = 0; i < count; ++i) {
                            const auto whole = a[i], wanted = c[i], all = c.matrix_of(got, i);
                            reference<T> x(n, nrhs);
                            for (std::size_t j = 0; j < nrhs; ++j)
                                for (std::size_t k = 0; k < n; ++k)
                                    x(k, j) = all(k, j);
                            const double size = whole.norm() * (whole.norm() * x.norm() + wanted.norm());
                            CHECK((whole.adjoint() * (whole * x - wanted)).norm() <= tolerance<T>(m * n) * size);
                        }
                    }
    });
}

TEST_CASE_TEMPLATE("a column of zeros has its number in info", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        batch<T> a(5, 3, 4, {1, 2}, random);
        const batch<T> c(5, 1, 4, {0, 1}, random);
        for (std::size_t i = 0; i < 5; ++i) {
            a(0, i, 1) = T(0);
            a(2, i, 0) = T(0);
        }
        const auto matrices = f.upload(a.data), right = f.upload(c.data);
        const auto info = f.upload(std::vector<std::int32_t>(4, unset));
        REQUIRE(test::exec_listed(f, blas::gels_batched<T>{.a = a.in(matrices),
                                                           .c = c.in(right),
                                                           .info = info,
                                                           .m = 5,
                                                           .n = 3,
                                                           .nrhs = 1,
                                                           .batch = 4,
                                                           .stride_a = a.stride,
                                                           .stride_c = c.stride,
                                                           .lda = a.ld}));
        CHECK(f.download(info) == std::vector<std::int32_t>{2, 0, 1, 0});
        const auto got = f.download(right);
        for (const std::size_t i : {1, 3}) {
            reference<T> x(3, 1);
            for (std::size_t k = 0; k < 3; ++k)
                x(k, 0) = c.matrix_of(got, i)(k, 0);
            const auto whole = a[i];
            CHECK((whole.adjoint() * (whole * x - c[i])).norm() <=
                  tolerance<T>(15) * whole.norm() * (whole.norm() * x.norm() + c[i].norm()));
        }
    });
}

// Other devices may divide in another way.
TEST_CASE_TEMPLATE("the CPU factorizes complex matrices with elements whose squares overflow or underflow", T,
                   std::complex<float>, std::complex<double>)
{
    using real = blas::real_part<T>;
    constexpr int exponent = std::numeric_limits<real>::max_exponent * 5 / 8;
    constexpr std::size_t m = 5, n = 3;
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto& options : test::host_devices()) {
        device_fixture f(options);
        batch<T> a(m, n, 1, {0, 0}, random);
        for (std::size_t j = 0; j < n; ++j)
            a(0, j, j) += T(real(m + 1));
        // The factorization, and then the factors of the reflections.
        const auto factorize = [&](const batch<T>& given) {
            const auto memory = f.upload(given.data);
            const auto factors = f.alloc<T>(n);
            REQUIRE(test::exec_listed(
                f, blas::geqrf_batched<T>{.a = given.in(memory), .tau = factors, .m = m, .n = n, .batch = 1}));
            return std::pair(f.download(memory), f.download(factors));
        };
        const auto [wanted, wanted_tau] = factorize(a);
        for (const int by : {-exponent, exponent}) {
            CAPTURE(by);
            auto scaled = a;
            for (std::size_t j = 0; j < n; ++j)
                for (std::size_t i = 0; i < m; ++i)
                    scaled(0, i, j) *= std::ldexp(real(1), by);
            const auto [got, tau] = factorize(scaled);
            for (std::size_t j = 0; j < n; ++j) {
                CHECK(std::abs(tau[j] - wanted_tau[j]) <= tolerance<T>(m * n));
                for (std::size_t i = 0; i < m; ++i) {
                    // R is scaled as A is, the reflections are not.
                    const T one = got[a.place(0, i, j)] * std::ldexp(real(1), i <= j ? -by : 0);
                    CHECK(std::abs(one - wanted[a.place(0, i, j)]) <= tolerance<T>(m * n) * a[0].norm());
                }
            }
        }
    }
}

TEST_CASE("the operands of QR factorizations must not overlap")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(8, 1));
        const auto info = f.upload(std::vector<std::int32_t>(1, 1));
        CHECK(f.error_of(blas::geqrf_batched<float>{
                  .a = v.subspan(0, 4), .tau = v.subspan(3, 2), .m = 2, .n = 2, .batch = 1}) == errc::overlap);
        CHECK(f.error_of(blas::gels_batched<float>{
                  .a = v.subspan(0, 4), .c = v.subspan(3, 2), .info = info, .m = 2, .n = 2, .nrhs = 1, .batch = 1}) ==
              errc::overlap);
        CHECK(f.download(v) == std::vector<float>(8, 1));
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_qr_batched
