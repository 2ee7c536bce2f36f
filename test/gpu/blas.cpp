#include "support/dense.hpp"
#include "support/device_fixture.hpp"
#include "support/devices.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

// Cases that test/unit/ops leaves out, because they take too long on a CPU or do not exist there. The cases of
// test/unit/ops also run on the GPU, in this program.
namespace {

using namespace coaccel;
using blas::transpose;
using test::device_fixture;
using test::engine;
using test::expectation;

device_options options(blas_mode mode = blas_mode::deterministic)
{
    device_options o;
    o.kind = device_kind::cuda;
    o.cuda.blas = mode;
    return o;
}

std::vector<device_options> gpus()
{
    return {options()};
}

[[maybe_unused]] const bool chosen = (test::devices_under_test = &gpus, true);

constexpr transpose ways[] = {transpose::no, transpose::yes};
constexpr blas_mode modes[] = {blas_mode::deterministic, blas_mode::fast};

template <class T>
struct product {
    product(std::size_t m_, std::size_t n_, std::size_t k_, transpose ta_, transpose tb_, engine& random)
        : m(m_), n(n_), k(k_), ta(ta_), tb(tb_), a(ta == transpose::no ? m : k, ta == transpose::no ? k : m, 0, random),
          b(tb == transpose::no ? k : n, tb == transpose::no ? n : k, 0, random), c(m, n, 0)
    {}

    std::vector<T> run(device_fixture& f, blas::math math = blas::math::standard) const
    {
        const auto da = f.upload(a.data);
        const auto db = f.upload(b.data);
        const auto dc = f.upload(c.data);
        REQUIRE(f.exec(blas::gemm<T>{.a = a.in(da),
                                     .b = b.in(db),
                                     .c = c.in(dc),
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .trans_a = ta,
                                     .trans_b = tb,
                                     .math = math}));
        return f.download(dc);
    }

    expectation wanted(std::size_t i, std::size_t j) const
    {
        expectation e;
        for (std::size_t p = 0; p < k; ++p)
            e.add((ta == transpose::no ? a.at(i, p) : a.at(p, i)) * (tb == transpose::no ? b.at(p, j) : b.at(j, p)));
        return e;
    }

    /// Checks a number of random elements, because checking all of them would take the CPU too long.
    void check(const std::vector<T>& got, std::size_t samples, engine& random) const
    {
        for (std::size_t s = 0; s < samples; ++s) {
            const std::size_t i = random() % m, j = random() % n;
            const auto e = wanted(i, j);
            const double value = test::number(got[c.place(i, j)]);
            if (!test::close<T>(value, e, k))
                FAIL_CHECK("(", i, ", ", j, ") is ", value, ", not ", e.value);
        }
    }

    std::size_t m, n, k;
    transpose ta, tb;
    test::matrix<T> a, b, c;
};

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

} // namespace

TEST_SUITE_BEGIN("blas on a GPU");

TEST_CASE_TEMPLATE("large products are right with every combination of transposes", T, float, double, half, bfloat16)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    constexpr std::size_t shapes[][3] = {{257, 311, 401}, {512, 256, 384}, {1023, 33, 1025}, {2048, 2047, 96}};
    for (const auto mode : modes) {
        device_fixture f(options(mode));
        for (const auto& shape : shapes)
            for (const auto ta : ways)
                for (const auto tb : ways) {
                    CAPTURE(mode);
                    CAPTURE(shape[0]);
                    CAPTURE(shape[1]);
                    CAPTURE(shape[2]);
                    CAPTURE(ta);
                    CAPTURE(tb);
                    const product<T> p(shape[0], shape[1], shape[2], ta, tb, random);
                    p.check(p.run(f), 2000, random);
                }
    }
}

TEST_CASE("TF32 is used only on request")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    device_fixture f(options());
    const product<float> p(512, 384, 640, transpose::no, transpose::no, random);
    const auto exact = p.run(f);
    p.check(exact, 5000, random);
    const auto rounded = p.run(f, blas::math::tf32);
    double worst = 0;
    for (int s = 0; s < 5000; ++s) {
        const std::size_t i = random() % p.m, j = random() % p.n;
        const auto e = p.wanted(i, j);
        worst = std::max(worst, std::abs(rounded[p.c.place(i, j)] - e.value) / e.magnitude);
    }
    CHECK(worst <= 2.1 * 0x1p-10);
    if (test::await(f.io, f.gpu.async_stats()).value().hardware.compute_capability >= 80)
        CHECK_FALSE(same(exact, rounded));
}

TEST_CASE_TEMPLATE("long vectors and tall matrices are right", T, float, double)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto mode : modes) {
        device_fixture f(options(mode));
        CAPTURE(mode);
        for (const std::size_t n : {4095, 100003})
            for (const std::int64_t inc : {1, -2}) {
                CAPTURE(n);
                CAPTURE(inc);
                const test::vector<T> x(n, inc, random), y(n, 1, random);
                const auto dx = f.upload(x.data);
                const auto dy = f.upload(y.data);
                expectation inner, sum, squares;
                std::size_t largest = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    inner.add(x.at(i) * y.at(i));
                    sum.add(std::abs(x.at(i)));
                    squares.add(x.at(i) * x.at(i));
                    if (std::abs(x.at(i)) > std::abs(x.at(largest)))
                        largest = i;
                }
                const expectation norm{std::sqrt(squares.value), std::sqrt(squares.value)};
                const auto dot = f.exec(blas::dot<T>{.x = x.in(dx), .y = y.in(dy), .n = n, .incx = inc}).value();
                CHECK(test::close<T>(double(dot), inner, n));
                const auto asum = f.exec(blas::asum<T>{.x = x.in(dx), .n = n, .incx = inc}).value();
                CHECK(test::close<T>(double(asum), sum, n));
                const auto nrm2 = f.exec(blas::nrm2<T>{.x = x.in(dx), .n = n, .incx = inc}).value();
                CHECK(test::close<T>(double(nrm2), norm, n));
                CHECK(f.exec(blas::iamax<T>{.x = x.in(dx), .n = n, .incx = inc}).value() == largest);
                REQUIRE(f.exec(blas::axpy<T>{.x = x.in(dx), .y = y.in(dy), .n = n, .alpha = 3, .incx = inc}));
                CHECK(y.difference(f.download(dy), 2, [&](std::size_t i) {
                    expectation e;
                    e.add(y.at(i));
                    e.add(3 * x.at(i));
                    return e;
                }) == "");
            }
        for (const auto trans : ways) {
            CAPTURE(trans);
            const bool t = trans == transpose::yes;
            const test::matrix<T> a(3001, 207, 1, random);
            const test::vector<T> x(t ? a.rows : a.cols, 1, random), y(t ? a.cols : a.rows, 1);
            const auto da = f.upload(a.data);
            const auto dx = f.upload(x.data);
            const auto dy = f.upload(y.data);
            REQUIRE(f.exec(blas::gemv<T>{
                .a = a.in(da), .x = x.in(dx), .y = y.in(dy), .m = a.rows, .n = a.cols, .trans = trans, .lda = a.ld}));
            CHECK(y.difference(f.download(dy), x.n, [&](std::size_t i) {
                expectation e;
                for (std::size_t k = 0; k < x.n; ++k)
                    e.add((t ? a.at(k, i) : a.at(i, k)) * x.at(k));
                return e;
            }) == "");
        }
    }
}

TEST_CASE_TEMPLATE("the deterministic mode gives the same bits each time", T, float, double, half, bfloat16)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    // Few results with many terms each: cuBLAS splits such sums and could add the parts in any order.
    const product<T> p(65, 63, 20011, transpose::yes, transpose::no, random);
    std::vector<T> first;
    for (int device = 0; device < 2; ++device) {
        device_fixture f(options(blas_mode::deterministic));
        for (int run = 0; run < 5; ++run) {
            const auto got = p.run(f);
            if (first.empty())
                first = got;
            CHECK(same(first, got));
        }
    }
}

TEST_CASE_TEMPLATE("deterministic reductions and products with vectors give the same bits each time", T, float, double)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    const test::matrix<T> a(40, 20011, 0, random);
    const test::vector<T> x(20011, 1, random), y(40, 1);
    device_fixture f(options(blas_mode::deterministic));
    const auto da = f.upload(a.data);
    const auto dx = f.upload(x.data);
    std::vector<T> first;
    for (int run = 0; run < 5; ++run) {
        const auto dy = f.upload(y.data);
        REQUIRE(
            f.exec(blas::gemv<T>{.a = a.in(da), .x = x.in(dx), .y = y.in(dy), .m = a.rows, .n = a.cols, .lda = a.ld}));
        auto got = f.download(dy);
        got.push_back(f.exec(blas::dot<T>{.x = x.in(dx), .y = x.in(dx), .n = x.n}).value());
        got.push_back(f.exec(blas::asum<T>{.x = x.in(dx), .n = x.n}).value());
        got.push_back(f.exec(blas::nrm2<T>{.x = x.in(dx), .n = x.n}).value());
        if (first.empty())
            first = got;
        CHECK(same(first, got));
    }
}

TEST_CASE("products on several lanes at once are right")
{
    auto o = options();
    o.context.lanes = lane_policy::pooled(3);
    device_fixture f(o);
    engine random(11);
    const product<float> p(64, 48, 32, transpose::no, transpose::no, random);
    const auto da = f.upload(p.a.data);
    const auto db = f.upload(p.b.data);
    std::vector<buffer<float>> results;
    for (int i = 0; i < 24; ++i)
        results.push_back(f.upload(p.c.data));
    std::size_t ended = 0;
    for (const auto& dc : results)
        f.gpu.async_exec(
            blas::gemm<float>{.a = p.a.in(da), .b = p.b.in(db), .c = p.c.in(dc), .m = p.m, .n = p.n, .k = p.k},
            [&ended](error_code ec) {
                CHECK_FALSE(ec);
                ++ended;
            });
    test::run_until(f.io, [&] { return ended == results.size(); });
    for (const auto& dc : results)
        CHECK(p.c.difference(f.download(dc), p.k, [&](auto i, auto j) { return p.wanted(i, j); }) == "");
}

TEST_CASE("a workspace that does not fit fails only the op")
{
    auto o = options();
    o.cuda.memory_limit = std::uint64_t(8) << 20;
    device_fixture f(o);
    const auto x = f.upload(std::vector<float>{3, 4});
    for (int i = 0; i < 2; ++i)
        CHECK(f.error_of(blas::scal<float>{.x = x, .n = 2, .alpha = 2}) == errc::out_of_memory);
    CHECK(f.download(x) == std::vector<float>{3, 4});

    o.cuda.blas_workspace = std::uint64_t(1) << 20;
    device_fixture small(o);
    const auto y = small.upload(std::vector<float>{3, 4});
    CHECK(small.exec(blas::nrm2<float>{.x = y, .n = 2}).value() == 5);
}

TEST_SUITE_END();
