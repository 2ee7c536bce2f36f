#include "support/dense.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level1_rotation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace test_ops_blas_level1 {

namespace {

using namespace coaccel;
using test::device_fixture;
using test::engine;
using test::expectation;
using limits = std::numeric_limits<std::int64_t>;

constexpr std::size_t sizes[] = {1, 2, 7, 33, 128};
constexpr std::int64_t increments[] = {1, 2, -1, -3};

/// Calls body(fixture, x, y) for each mode, size and pair of increments.
template <class T, class Body>
void for_pairs(Body body)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto n : sizes)
            for (const auto incx : increments)
                for (const auto incy : increments) {
                    CAPTURE(n);
                    CAPTURE(incx);
                    CAPTURE(incy);
                    body(f, test::vector<T>(n, incx, random), test::vector<T>(n, incy, random));
                }
    }
}

template <class T, class Body>
void for_vectors(Body body)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto n : sizes)
            for (const auto incx : increments) {
                CAPTURE(n);
                CAPTURE(incx);
                body(f, test::vector<T>(n, incx, random));
            }
    }
}

template <class T>
test::expectation_of<test::wide<T>> just(const test::wide<T>& value)
{
    return {value, std::abs(value)};
}

/// |re| + |im|
template <class Value>
double magnitude(const Value& value)
{
    return std::abs(std::real(value)) + std::abs(std::imag(value));
}

any_ref place(std::uint64_t offset, std::uint64_t size)
{
    return {.device = 1, .generation = 1, .slot = 0, .version = 1, .offset = offset, .size = size, .type = dtype::f32};
}

} // namespace

TEST_SUITE_BEGIN("blas level 1");

TEST_CASE_TEMPLATE("axpy adds a multiple of x to y", T, float, double, std::complex<float>, std::complex<double>)
{
    for_pairs<T>([](device_fixture& f, const test::vector<T>& x, const test::vector<T>& y) {
        for (const T alpha : {test::factor<T>(0), test::factor<T>(1), test::factor<T>(-2.5)}) {
            CAPTURE(test::number(alpha));
            // With alpha zero, x contains poison values, which must not reach the result.
            const auto dx = f.upload(alpha == T(0) ? test::vector<T>(x.n, x.inc).data : x.data);
            const auto dy = f.upload(y.data);
            REQUIRE(test::exec_listed(
                f,
                blas::axpy<T>{.x = x.in(dx), .y = y.in(dy), .n = x.n, .alpha = alpha, .incx = x.inc, .incy = y.inc}));
            CHECK(y.difference(f.download(dy), 2, [&](std::size_t i) {
                test::expectation_of<test::wide<T>> e;
                e.add(y.at(i));
                e.add(test::number(alpha) * x.at(i));
                return e;
            }) == "");
        }
    });
}

TEST_CASE_TEMPLATE("scal multiplies in place", T, float, double, std::complex<float>, std::complex<double>)
{
    for_vectors<T>([](device_fixture& f, const test::vector<T>& x) {
        for (const T alpha : {test::factor<T>(0), test::factor<T>(1), test::factor<T>(-0.75)}) {
            CAPTURE(test::number(alpha));
            const auto dx = f.upload(x.data);
            REQUIRE(test::exec_listed(f, blas::scal<T>{.x = x.in(dx), .n = x.n, .alpha = alpha, .incx = x.inc}));
            CHECK(x.difference(f.download(dx), 1,
                               [&](std::size_t i) { return just<T>(test::number(alpha) * x.at(i)); }) == "");
        }
    });
}

TEST_CASE_TEMPLATE("copy overwrites y, whatever it held", T, float, double, std::complex<float>, std::complex<double>)
{
    for_pairs<T>([](device_fixture& f, const test::vector<T>& x, const test::vector<T>& shape) {
        const test::vector<T> y(shape.n, shape.inc);
        const auto dx = f.upload(x.data);
        const auto dy = f.upload(y.data);
        REQUIRE(
            test::exec_listed(f, blas::copy<T>{.x = x.in(dx), .y = y.in(dy), .n = x.n, .incx = x.inc, .incy = y.inc}));
        CHECK(y.difference(f.download(dy), 0, [&](std::size_t i) { return just<T>(x.at(i)); }) == "");
    });
}

TEST_CASE_TEMPLATE("swap exchanges x and y", T, float, double, std::complex<float>, std::complex<double>)
{
    for_pairs<T>([](device_fixture& f, const test::vector<T>& x, const test::vector<T>& y) {
        const auto dx = f.upload(x.data);
        const auto dy = f.upload(y.data);
        REQUIRE(
            test::exec_listed(f, blas::swap<T>{.x = x.in(dx), .y = y.in(dy), .n = x.n, .incx = x.inc, .incy = y.inc}));
        CHECK(x.difference(f.download(dx), 0, [&](std::size_t i) { return just<T>(y.at(i)); }) == "");
        CHECK(y.difference(f.download(dy), 0, [&](std::size_t i) { return just<T>(x.at(i)); }) == "");
    });
}

TEST_CASE_TEMPLATE("dot replies with the inner product", T, float, double)
{
    for_pairs<T>([](device_fixture& f, const test::vector<T>& x, const test::vector<T>& y) {
        const auto dx = f.upload(x.data);
        const auto dy = f.upload(y.data);
        const auto got =
            f.exec(blas::dot<T>{.x = x.in(dx), .y = y.in(dy), .n = x.n, .incx = x.inc, .incy = y.inc}).value();
        expectation wanted;
        for (std::size_t i = 0; i < x.n; ++i)
            wanted.add(x.at(i) * y.at(i));
        CHECK(test::close<T>(double(got), wanted, x.n));
    });
}

TEST_CASE_TEMPLATE("nrm2 replies with the Euclidean norm", T, float, double, std::complex<float>, std::complex<double>)
{
    for_vectors<T>([](device_fixture& f, const test::vector<T>& x) {
        const auto dx = f.upload(x.data);
        const auto got = f.exec(blas::nrm2<T>{.x = x.in(dx), .n = x.n, .incx = x.inc}).value();
        double squares = 0;
        for (std::size_t i = 0; i < x.n; ++i)
            squares += std::norm(x.at(i));
        CHECK(test::close<blas::real_part<T>>(double(got), just<double>(std::sqrt(squares)), 2 * x.n));
    });
}

TEST_CASE_TEMPLATE("nrm2 neither overflows nor underflows on the way", T, float, double)
{
    using t = std::numeric_limits<T>;
    struct row {
        const char* name;
        std::vector<T> x;
        T norm;
    };
    const T huge = t::max() / 8;
    const T tiny = t::min() * 4;
    const std::vector<row> rows = {
        {"huge", {3 * huge, 4 * huge}, 5 * huge},
        {"tiny", {3 * tiny, 4 * tiny}, 5 * tiny},
        {"denormal", {3 * t::denorm_min(), -4 * t::denorm_min()}, 5 * t::denorm_min()},
        {"huge beside tiny", {tiny, huge, 0, -tiny}, huge},
        {"zeros", {0, 0, 0}, 0},
        {"negative zero", {-T(0)}, 0},
        {"infinite", {1, t::infinity(), 2}, t::infinity()},
        {"minus infinite", {-t::infinity()}, t::infinity()},
    };
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& r : rows) {
            CAPTURE(r.name);
            const auto x = f.upload(r.x);
            const T got = f.exec(blas::nrm2<T>{.x = x, .n = r.x.size()}).value();
            // cuBLAS treats values below the smallest normal number as zero.
            if (r.norm < t::min() && options.kind == device_kind::cuda)
                CHECK((got == r.norm || got == 0));
            else if (std::isinf(r.norm) || r.norm == 0 || r.norm < t::min())
                CHECK(got == r.norm);
            else
                CHECK(std::abs(got / r.norm - 1) < 4 * t::epsilon());
        }
        const auto x = f.upload(std::vector<T>{1, t::quiet_NaN(), 2});
        CHECK(std::isnan(f.exec(blas::nrm2<T>{.x = x, .n = 3}).value()));
    }
}

TEST_CASE_TEMPLATE("asum replies with the sum of magnitudes", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    for_vectors<T>([](device_fixture& f, const test::vector<T>& x) {
        const auto dx = f.upload(x.data);
        const auto got = f.exec(blas::asum<T>{.x = x.in(dx), .n = x.n, .incx = x.inc}).value();
        expectation wanted;
        for (std::size_t i = 0; i < x.n; ++i)
            wanted.add(magnitude(x.at(i)));
        CHECK(test::close<blas::real_part<T>>(double(got), wanted, 2 * x.n));
    });
}

TEST_CASE_TEMPLATE("iamax and iamin find the largest and smallest magnitude", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    for_vectors<T>([](device_fixture& f, const test::vector<T>& x) {
        const auto dx = f.upload(x.data);
        std::uint64_t largest = 0, smallest = 0;
        for (std::size_t i = 1; i < x.n; ++i) {
            if (magnitude(x.at(i)) > magnitude(x.at(largest)))
                largest = i;
            if (magnitude(x.at(i)) < magnitude(x.at(smallest)))
                smallest = i;
        }
        CHECK(f.exec(blas::iamax<T>{.x = x.in(dx), .n = x.n, .incx = x.inc}).value() == largest);
        CHECK(f.exec(blas::iamin<T>{.x = x.in(dx), .n = x.n, .incx = x.inc}).value() == smallest);
    });
}

TEST_CASE_TEMPLATE("iamin takes the first of equals, in the vector's own order", T, float, double)
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto x = f.upload(std::vector<T>{4, -1, 7, 1, 1, 9});
        CHECK(f.exec(blas::iamin<T>{.x = x, .n = 6}).value() == 1);
        CHECK(f.exec(blas::iamin<T>{.x = x, .n = 6, .incx = -1}).value() == 1);
        CHECK(f.exec(blas::iamin<T>{.x = x, .n = 3, .incx = -2}).value() == 0);
        CHECK(f.exec(blas::iamin<T>{.x = x, .n = 3, .incx = 2}).value() == 2);
        CHECK(f.exec(blas::iamin<T>{.x = x, .n = 1, .incx = -7}).value() == 0);
    }
}

TEST_CASE_TEMPLATE("dotu and dotc reply with the products of complex vectors", T, std::complex<float>,
                   std::complex<double>)
{
    for_pairs<T>([](device_fixture& f, const test::vector<T>& x, const test::vector<T>& y) {
        const auto dx = f.upload(x.data), dy = f.upload(y.data);
        test::expectation_of<test::wide<T>> plain, conjugate;
        for (std::size_t i = 0; i < x.n; ++i) {
            plain.add(x.at(i) * y.at(i));
            conjugate.add(std::conj(x.at(i)) * y.at(i));
        }
        const blas::dotu<T> dotu{.x = x.in(dx), .y = y.in(dy), .n = x.n, .incx = x.inc, .incy = y.inc};
        const blas::dotc<T> dotc{.x = x.in(dx), .y = y.in(dy), .n = x.n, .incx = x.inc, .incy = y.inc};
        CHECK(test::close<T>(test::number(f.exec(dotu).value()), plain, x.n));
        CHECK(test::close<T>(test::number(f.exec(dotc).value()), conjugate, x.n));
        const auto stored = f.upload(std::vector<T>(1));
        REQUIRE(test::exec_listed(f, store_reply(dotc, stored)));
        CHECK(test::close<T>(test::number(f.download(stored)[0]), conjugate, x.n));
    });
}

TEST_CASE_TEMPLATE("rot rotates pairs of elements", T, float, double, std::complex<float>, std::complex<double>)
{
    for_pairs<T>([](device_fixture& f, const test::vector<T>& x, const test::vector<T>& y) {
        const auto dx = f.upload(x.data), dy = f.upload(y.data);
        const blas::real_part<T> c = blas::real_part<T>(0.6);
        const T s = T(0.8) * test::factor<T>(1);
        REQUIRE(test::exec_listed(
            f, blas::rot<T>{.x = x.in(dx), .y = y.in(dy), .n = x.n, .c = c, .s = s, .incx = x.inc, .incy = y.inc}));
        const double cosine = c;
        const auto sine = test::number(s);
        const auto sum = [](const test::wide<T>& a, const test::wide<T>& b) {
            test::expectation_of<test::wide<T>> e;
            e.add(a);
            e.add(b);
            return e;
        };
        CHECK(x.difference(f.download(dx), 2, [&](std::size_t i) { return sum(cosine * x.at(i), sine * y.at(i)); }) ==
              "");
        CHECK(y.difference(f.download(dy), 2, [&](std::size_t i) {
            return sum(cosine * y.at(i), -test::conjugate(sine) * x.at(i));
        }) == "");
    });
}

TEST_CASE_TEMPLATE("rotg finds the rotation that makes the second element zero", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    using real = blas::real_part<T>;
    engine random(3);
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        std::vector<std::pair<T, T>> pairs{{T(3), T(4)}, {T(-4), T(3)}, {T(0), T(2)}, {T(2), T(0)}, {T(1), T(1)}};
        for (int i = 0; i < 20; ++i)
            pairs.emplace_back(test::random_element<T>(random), test::random_element<T>(random));
        for (const auto& p : pairs) {
            const auto a = f.upload(std::vector<T>{p.first}), b = f.upload(std::vector<T>{p.second});
            const auto c = f.upload(std::vector<real>{test::poison<real>()});
            const auto s = f.upload(std::vector<T>{test::poison<T>()});
            REQUIRE(test::exec_listed(f, blas::rotg<T>{.a = a, .b = b, .c = c, .s = s}));
            const auto before_a = test::number(p.first), before_b = test::number(p.second);
            const double cosine = f.download(c)[0];
            const auto sine = test::number(f.download(s)[0]);
            CHECK(cosine * cosine + std::norm(sine) == doctest::Approx(1).epsilon(1e-5));
            const double bound = 16 * test::unit_roundoff<real>() * (std::abs(before_a) + std::abs(before_b));
            CHECK(std::abs(cosine * before_a + sine * before_b - test::number(f.download(a)[0])) <= bound);
            CHECK(std::abs(cosine * before_b - test::conjugate(sine) * before_a) <= bound);
            if constexpr (blas::real<T>) {
                // z restores c and s.
                const double z = f.download(b)[0];
                const double restored = std::abs(z) < 1 ? std::sqrt(1 - z * z) : z == 1 ? 0 : 1 / z;
                CHECK(std::abs(restored - cosine) <= 1e-3);
            }
        }
    }
}

TEST_CASE_TEMPLATE("iamax takes the first of equals, in the vector's own order", T, float, double)
{
    struct row {
        const char* name;
        std::vector<T> x;
        std::int64_t inc;
        std::uint64_t n;
        std::uint64_t at;
    };
    const std::vector<row> rows = {
        {"all equal", {2, 2, 2}, 1, 3, 0},
        {"all zero", {0, 0, 0, 0}, 1, 4, 0},
        {"signs do not count", {1, -3, 3, 2}, 1, 4, 1},
        {"from the end", {1, -3, 3, 2}, -1, 4, 1},
        {"equals from the end", {5, 1, 5}, -1, 3, 0},
        {"strided", {1, 9, 4, 9, 4}, 2, 3, 1},
        {"strided from the end", {4, 9, 4, 9, 1}, -2, 3, 1},
        {"infinity", {1, -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()}, 1, 3, 1},
        {"one", {7}, -5, 1, 0},
    };
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& r : rows) {
            CAPTURE(r.name);
            const auto x = f.upload(r.x);
            CHECK(f.exec(blas::iamax<T>{.x = x, .n = r.n, .incx = r.inc}).value() == r.at);
        }
    }
}

TEST_CASE("reductions in flight together each reply with their own result")
{
    constexpr std::size_t count = 100;
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        std::vector<double> numbers(count);
        for (std::size_t i = 0; i < count; ++i)
            numbers[i] = (i % 2 ? 1 : -1) * double(i + 1);
        const auto x = f.upload(numbers);
        std::vector<double> sums(count), products(count);
        std::vector<std::uint64_t> places(count);
        std::size_t ended = 0;
        for (std::size_t i = 0; i < count; ++i) {
            f.gpu.async_exec(blas::asum<double>{.x = x, .n = i + 1}, [&, i](error_code ec, double sum) {
                CHECK_FALSE(ec);
                sums[i] = sum;
                ++ended;
            });
            f.gpu.async_exec(blas::iamax<double>{.x = x.subspan(0, i + 1), .n = i + 1, .incx = i % 2 ? 1 : -1},
                             [&, i](error_code ec, std::uint64_t at) {
                                 CHECK_FALSE(ec);
                                 places[i] = at;
                                 ++ended;
                             });
            f.gpu.async_exec(blas::dot<double>{.x = x.subspan(i, 1), .y = x.subspan(0, 1), .n = 1},
                             [&, i](error_code ec, double product) {
                                 CHECK_FALSE(ec);
                                 products[i] = product;
                                 ++ended;
                             });
        }
        test::run_until(f.io, [&] { return ended == 3 * count; });
        for (std::size_t i = 0; i < count; ++i) {
            CAPTURE(i);
            CHECK(sums[i] == double((i + 1) * (i + 2) / 2));
            CHECK(places[i] == (i % 2 ? i : 0));
            CHECK(products[i] == -numbers[i]);
        }
    }
}

TEST_CASE("rows of one matrix can be swapped, copied and added")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const std::int64_t ld = 3;
        const auto a = f.upload(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9});
        REQUIRE(test::exec_listed(
            f, blas::swap<float>{.x = a.subspan(0, 7), .y = a.subspan(2, 7), .n = 3, .incx = ld, .incy = ld}));
        CHECK(f.download(a) == std::vector<float>{3, 2, 1, 6, 5, 4, 9, 8, 7});
        REQUIRE(test::exec_listed(
            f, blas::copy<float>{.x = a.subspan(0, 7), .y = a.subspan(1, 7), .n = 3, .incx = ld, .incy = -ld}));
        CHECK(f.download(a) == std::vector<float>{3, 9, 1, 6, 6, 4, 9, 3, 7});
        REQUIRE(test::exec_listed(
            f, blas::axpy<float>{
                   .x = a.subspan(2, 7), .y = a.subspan(0, 7), .n = 3, .alpha = 10, .incx = ld, .incy = ld}));
        CHECK(f.download(a) == std::vector<float>{13, 9, 1, 46, 6, 4, 79, 3, 7});
    }
}

TEST_CASE("operands that share an element are refused where one is written")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(16, 1));
        using op = blas::axpy<float>;
        CHECK(f.error_of(op{.x = v, .y = v, .n = 16}) == errc::overlap);
        CHECK(f.error_of(op{.x = v, .y = v, .n = 16, .incx = -1}) == errc::overlap);
        CHECK(f.error_of(op{.x = v.subspan(0, 8), .y = v.subspan(7, 8), .n = 8}) == errc::overlap);
        CHECK(f.error_of(op{.x = v.subspan(0, 8), .y = v.subspan(8, 8), .n = 8, .alpha = 0}) == error_code());
        CHECK(f.error_of(op{.x = v.subspan(0, 15), .y = v.subspan(2, 14), .n = 7, .incx = 2, .incy = 2}) ==
              errc::overlap);
        CHECK(f.error_of(op{.x = v.subspan(0, 15), .y = v.subspan(1, 15), .n = 8, .alpha = 0, .incx = 2, .incy = -2}) ==
              error_code());
        CHECK(f.error_of(blas::swap<float>{.x = v, .y = v, .n = 16}) == errc::overlap);
        CHECK(f.error_of(blas::rot<float>{.x = v, .y = v, .n = 16}) == errc::overlap);
        const auto two = v.subspan(0, 1), three = v.subspan(1, 1), four = v.subspan(2, 1);
        CHECK(f.error_of(blas::rotg<float>{.a = two, .b = three, .c = four, .s = four}) == errc::overlap);
        CHECK(f.error_of(blas::copy<float>{.x = v.subspan(0, 4), .y = v.subspan(3, 4), .n = 4}) == errc::overlap);
        CHECK(f.exec(blas::dot<float>{.x = v, .y = v, .n = 16}).value() == 16);
        CHECK(f.exec(blas::dot<float>{.x = v.subspan(0, 9), .y = v.subspan(3, 9), .n = 9}).value() == 9);
    }
}

TEST_CASE("one element may have any increment except zero")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto inc : {limits::min(), limits::min() + 1, limits::max(), std::int64_t(-1)})
            for (const auto other : {limits::min(), limits::max(), std::int64_t(1)}) {
                CAPTURE(inc);
                CAPTURE(other);
                const auto x = f.upload(std::vector<double>{3});
                const auto y = f.upload(std::vector<double>{4});
                CHECK(f.exec(blas::dot<double>{.x = x, .y = y, .n = 1, .incx = inc, .incy = other}).value() == 12);
                CHECK(f.exec(blas::axpy<double>{.x = x, .y = y, .n = 1, .incx = inc, .incy = other}));
                CHECK(f.exec(blas::swap<double>{.x = x, .y = y, .n = 1, .incx = inc, .incy = other}));
                CHECK(f.exec(blas::nrm2<double>{.x = x, .n = 1, .incx = inc}).value() == 7);
                CHECK(f.exec(blas::asum<double>{.x = y, .n = 1, .incx = inc}).value() == 3);
                CHECK(f.exec(blas::iamax<double>{.x = y, .n = 1, .incx = inc}).value() == 0);
                CHECK(f.exec(blas::scal<double>{.x = y, .n = 1, .alpha = 2, .incx = inc}));
                CHECK(f.exec(blas::copy<double>{.x = x, .y = y, .n = 1, .incx = inc, .incy = other}));
                CHECK(f.error_of(blas::copy<double>{.x = x, .y = x, .n = 1, .incx = inc, .incy = other}) ==
                      errc::overlap);
                CHECK(f.download(y) == std::vector<double>{7});
            }
    }
}

TEST_CASE("vectors_touch never misses a common element, and is exact for steps of one length")
{
    for (std::uint64_t n = 1; n <= 5; ++n)
        for (std::int64_t a : {1, 2, 3, 4, -1, -2, -3})
            for (std::int64_t b : {1, 2, 3, 5, -1, -2, -3})
                for (std::uint64_t xo = 0; xo < 9; ++xo)
                    for (std::uint64_t yo = 0; yo < 9; ++yo) {
                        const auto sa = static_cast<std::uint64_t>(std::abs(a));
                        const auto sb = static_cast<std::uint64_t>(std::abs(b));
                        std::set<std::uint64_t> places;
                        for (std::uint64_t i = 0; i < n; ++i)
                            places.insert(xo + i * sa);
                        bool common = false;
                        for (std::uint64_t i = 0; i < n; ++i)
                            common |= places.contains(yo + i * sb);
                        const bool told = coaccel::detail::vectors_touch(place(xo, (n - 1) * sa + 1), a,
                                                                         place(yo, (n - 1) * sb + 1), b, n);
                        const bool right = sa == sb ? told == common : told || !common;
                        if (!right)
                            FAIL_CHECK("n ", n, " at ", xo, " by ", a, ", at ", yo, " by ", b);
                    }
}

TEST_CASE("vectors of different buffers never touch")
{
    using coaccel::detail::vectors_touch;
    const auto x = place(0, 8);
    for (auto field : {&any_ref::device, &any_ref::generation, &any_ref::slot, &any_ref::version}) {
        auto y = x;
        y.*field += 1;
        CHECK_FALSE(vectors_touch(x, 1, y, 1, 8));
    }
    CHECK(vectors_touch(x, 1, x, 1, 8));
    CHECK_FALSE(vectors_touch(x, 1, x, 1, 0));
}

TEST_CASE("a reply can be stored in device memory")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto x = f.upload<float>({1, -2, 3, -4});
        const auto y = f.upload<float>({2, 2, 2, 2});
        const auto all = f.upload(std::vector<float>(4, -1.0f));
        for (int i = 0; i < 2; ++i) {
            REQUIRE(test::exec_listed(f, store_reply(blas::dot<float>{.x = x, .y = y, .n = 4}, all.subspan(0, 1))));
            REQUIRE(test::exec_listed(f, store_reply(blas::asum<float>{.x = x, .n = 4}, all.subspan(1, 1))));
            REQUIRE(test::exec_listed(f, store_reply(blas::nrm2<float>{.x = y, .n = 4}, all.subspan(2, 1))));
            const auto replies = f.download(all);
            CHECK(replies[0] == -4);
            CHECK(replies[1] == 10);
            CHECK(replies[2] == doctest::Approx(4));
            CHECK(replies[3] == -1);
        }
        // Used by a later op, without a round trip through the host.
        REQUIRE(test::exec_listed(f, store_reply(blas::asum<float>{.x = x, .n = 4}, all.subspan(3, 1))));
        REQUIRE(test::exec_listed(f, blas::axpy<float>{.x = all.subspan(3, 1), .y = y.subspan(0, 1), .n = 1}));
        CHECK(f.download(y)[0] == 12);
        CHECK(f.error_of(store_reply(blas::asum<float>{.x = x, .n = 4}, all)) == errc::length_mismatch);
        CHECK(f.error_of(store_reply(blas::asum<float>{.x = x, .n = 9}, all.subspan(0, 1))) == errc::out_of_bounds);
        CHECK(f.error_of(store_reply(blas::asum<float>{.x = x, .n = 4}, x.subspan(1, 1))) == errc::overlap);
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level1
