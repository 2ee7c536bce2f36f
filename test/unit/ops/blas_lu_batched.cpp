#include "support/batches.hpp"
#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/lu_batched.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace test_ops_blas_lu_batched {

namespace {

using namespace coaccel;
using blas::transpose;
using test::batch;
using test::batch_gaps;
using test::device_fixture;
using test::engine;
using test::reference;
using test::tolerance;
using test::upper_of;

constexpr std::size_t every_order[] = {1, 2, 3, 8, 17, 33};
constexpr std::int32_t unset = std::numeric_limits<std::int32_t>::min();

/// Whether rows are exchanged.
enum class exchanges : bool { no, yes };
constexpr exchanges both[] = {exchanges::no, exchanges::yes};

/// Matrices with which equations are well conditioned: their largest elements are on the diagonal, or, if rows are
/// exchanged, on the other one.
template <class T>
batch<T> well_conditioned(std::size_t n, std::size_t count, batch_gaps gaps, exchanges rows, engine& random)
{
    batch<T> made(n, n, count, gaps, random);
    for (std::size_t m = 0; m < count; ++m)
        for (std::size_t j = 0; j < n; ++j)
            made(m, rows == exchanges::yes ? n - 1 - j : j, j) += T(static_cast<blas::real_part<T>>(n + 1));
    return made;
}

/// The factorizations of a batch, on a device.
template <class T>
struct factorized {
    factorized(device_fixture& f, const batch<T>& a, exchanges how)
        : memory(f.upload(a.data)), pivots(f.upload(std::vector<std::int32_t>(a.rows * a.count + 2, unset))),
          info(f.upload(std::vector<std::int32_t>(a.count + 2, unset))), rows(how), order(a.rows), count(a.count)
    {
        if (rows == exchanges::yes)
            REQUIRE(test::exec_listed(f, blas::getrf_batched<T>{.a = a.in(memory),
                                                                .pivots = used_pivots(),
                                                                .info = used_info(),
                                                                .n = order,
                                                                .batch = count,
                                                                .stride_a = a.stride_field(),
                                                                .lda = a.ld_field()}));
        else
            REQUIRE(test::exec_listed(f, blas::getrf_nopivot_batched<T>{.a = a.in(memory),
                                                                        .info = used_info(),
                                                                        .n = order,
                                                                        .batch = count,
                                                                        .stride_a = a.stride_field(),
                                                                        .lda = a.ld_field()}));
    }

    ref<std::int32_t> used_pivots() const { return pivots.subspan(1, order * count); }
    ref<std::int32_t> used_info() const { return info.subspan(1, count); }

    buffer<T> memory;
    buffer<std::int32_t> pivots;
    buffer<std::int32_t> info;
    exchanges rows;
    std::size_t order;
    std::size_t count;
};

template <class T>
reference<T> lower_of(const reference<T>& lu)
{
    auto made = reference<T>::identity(lu.rows);
    for (std::size_t j = 0; j < lu.cols; ++j)
        for (std::size_t i = j + 1; i < lu.rows; ++i)
            made(i, j) = lu(i, j);
    return made;
}

/// Makes the exchanges of one matrix. The pivots must be possible.
template <class T>
bool exchange_rows(reference<T>& a, const std::int32_t* pivots)
{
    for (std::size_t k = 0; k < a.rows; ++k) {
        const auto with = static_cast<std::size_t>(pivots[k]) - 1;
        if (with < k || with >= a.rows)
            return false;
        for (std::size_t j = 0; j < a.cols; ++j)
            std::swap(a(k, j), a(with, j));
    }
    return true;
}

/// ||P * A - L * U|| and the magnitude of L.
template <class T>
void check_factors(const batch<T>& a, const std::vector<T>& got, const std::vector<std::int32_t>& pivots,
                   exchanges rows)
{
    for (std::size_t m = 0; m < a.count; ++m) {
        auto permuted = a[m];
        if (rows == exchanges::yes)
            REQUIRE(exchange_rows(permuted, pivots.data() + 1 + m * a.rows));
        const auto lu = a.matrix_of(got, m);
        const auto lower = lower_of(lu), upper = upper_of(lu);
        CHECK((permuted - lower * upper).norm() <= tolerance<T>(a.rows) * lower.norm() * upper.norm());
        double most = 0;
        for (const auto& x : lower.data)
            most = std::max(most, std::abs(x));
        // A pivot may be chosen by the sum of the magnitudes of its parts.
        CHECK(most <= 1.5);
    }
}

/// Calls `body(fixture, a, rows, random)` for all sizes, layouts and both ways.
template <class T, class Body>
void for_all(Body body)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto rows : both)
            for (const auto n : every_order)
                for (const auto count : test::every_batch)
                    for (const auto gaps : test::every_gap) {
                        INFO("n ", n, ", batch ", count, ", gap ", gaps.ld, ", pivots ", bool(rows));
                        body(f, well_conditioned<T>(n, count, gaps, rows, random), rows, random);
                    }
    });
}

} // namespace

TEST_SUITE_BEGIN("blas LU of batches");

TEST_CASE_TEMPLATE("P * A is L * U, and nothing else is written", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    for_all<T>([](device_fixture& f, const batch<T>& a, exchanges rows, engine&) {
        const factorized<T> made(f, a, rows);
        const auto got = f.download(made.memory);
        CHECK(a.gaps_remain(got));
        const auto pivots = f.download(made.pivots);
        check_factors(a, got, pivots, rows);
        CHECK(pivots.front() == unset);
        CHECK(pivots.back() == unset);
        const auto info = f.download(made.info);
        CHECK(info.front() == unset);
        CHECK(info.back() == unset);
        CHECK(std::vector<std::int32_t>(info.begin() + 1, info.end() - 1) == std::vector<std::int32_t>(a.count));
    });
}

TEST_CASE_TEMPLATE("the factorizations solve equations", T, float, double, std::complex<float>, std::complex<double>)
{
    for_all<T>([](device_fixture& f, const batch<T>& a, exchanges rows, engine& random) {
        const factorized<T> made(f, a, rows);
        for (const auto trans : test::every_transpose)
            for (const std::size_t nrhs : {1, 4}) {
                INFO("trans ", int(trans), ", nrhs ", nrhs);
                const batch<T> b(a.rows, nrhs, a.count, {a.ld - a.rows, 2}, random);
                const auto memory = f.upload(b.data);
                if (rows == exchanges::yes)
                    REQUIRE(test::exec_listed(f, blas::getrs_batched<T>{.a = a.in(made.memory),
                                                                        .pivots = made.used_pivots(),
                                                                        .b = b.in(memory),
                                                                        .n = a.rows,
                                                                        .nrhs = nrhs,
                                                                        .batch = a.count,
                                                                        .stride_a = a.stride_field(),
                                                                        .stride_b = b.stride_field(),
                                                                        .trans = trans,
                                                                        .lda = a.ld_field(),
                                                                        .ldb = b.ld_field()}));
                else
                    REQUIRE(test::exec_listed(f, blas::getrs_nopivot_batched<T>{.a = a.in(made.memory),
                                                                                .b = b.in(memory),
                                                                                .n = a.rows,
                                                                                .nrhs = nrhs,
                                                                                .batch = a.count,
                                                                                .stride_a = a.stride_field(),
                                                                                .stride_b = b.stride_field(),
                                                                                .trans = trans,
                                                                                .lda = a.ld_field(),
                                                                                .ldb = b.ld_field()}));
                const auto got = f.download(memory);
                CHECK(b.gaps_remain(got));
                for (std::size_t m = 0; m < a.count; ++m) {
                    auto taken = a[m];
                    if (trans != transpose::no)
                        taken = taken.adjoint();
                    if (trans == transpose::yes)
                        for (auto& x : taken.data)
                            x = test::conjugate(x);
                    const auto x = b.matrix_of(got, m);
                    CHECK((taken * x - b[m]).norm() <= tolerance<T>(a.rows) * taken.norm() * x.norm());
                }
            }
    });
}

TEST_CASE_TEMPLATE("the factorizations give inverses", T, float, double, std::complex<float>, std::complex<double>)
{
    for_all<T>([](device_fixture& f, const batch<T>& a, exchanges rows, engine&) {
        const factorized<T> made(f, a, rows);
        const auto before = f.download(made.memory);
        const batch<T> c(a.rows, a.rows, a.count, {a.ld - a.rows, 1});
        const auto memory = f.upload(c.data);
        const auto info = f.upload(std::vector<std::int32_t>(a.count, unset));
        if (rows == exchanges::yes)
            REQUIRE(test::exec_listed(f, blas::getri_batched<T>{.a = a.in(made.memory),
                                                                .pivots = made.used_pivots(),
                                                                .c = c.in(memory),
                                                                .info = info,
                                                                .n = a.rows,
                                                                .batch = a.count,
                                                                .stride_a = a.stride_field(),
                                                                .stride_c = c.stride_field(),
                                                                .lda = a.ld_field(),
                                                                .ldc = c.ld_field()}));
        else
            REQUIRE(test::exec_listed(f, blas::getri_nopivot_batched<T>{.a = a.in(made.memory),
                                                                        .c = c.in(memory),
                                                                        .info = info,
                                                                        .n = a.rows,
                                                                        .batch = a.count,
                                                                        .stride_a = a.stride_field(),
                                                                        .stride_c = c.stride_field(),
                                                                        .lda = a.ld_field(),
                                                                        .ldc = c.ld_field()}));
        const auto got = f.download(memory);
        CHECK(c.gaps_remain(got));
        CHECK(std::memcmp(f.download(made.memory).data(), before.data(), before.size() * sizeof(T)) == 0);
        CHECK(f.download(info) == std::vector<std::int32_t>(a.count));
        const auto one = reference<T>::identity(a.rows);
        for (std::size_t m = 0; m < a.count; ++m) {
            const auto whole = a[m], inverse = c.matrix_of(got, m);
            const double condition = whole.norm() * inverse.norm();
            CHECK((whole * inverse - one).norm() <= tolerance<T>(a.rows) * condition);
            CHECK((inverse * whole - one).norm() <= tolerance<T>(a.rows) * condition);
        }
    });
}

TEST_CASE_TEMPLATE("a singular matrix has the number of its pivot in info, and the others are factorized", T, float,
                   double, std::complex<float>, std::complex<double>)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto rows : both) {
            CAPTURE(bool(rows));
            constexpr std::size_t n = 4;
            auto a = well_conditioned<T>(n, 4, {1, 2}, rows, random);
            // A column of zeros is eliminated exactly.
            for (std::size_t i = 0; i < n; ++i) {
                a(1, i, 2) = T(0);
                a(3, i, 0) = T(0);
            }
            const factorized<T> made(f, a, rows);
            CHECK(f.download(made.info) == std::vector<std::int32_t>{unset, 0, 3, 0, 1, unset});
            const batch<T> c(n, n, 4, {0, 0});
            const auto memory = f.upload(c.data);
            const auto info = f.upload(std::vector<std::int32_t>(4, unset));
            if (rows == exchanges::no)
                continue;
            REQUIRE(test::exec_listed(f, blas::getri_batched<T>{.a = a.in(made.memory),
                                                                .pivots = made.used_pivots(),
                                                                .c = c.in(memory),
                                                                .info = info,
                                                                .n = n,
                                                                .batch = 4,
                                                                .stride_a = a.stride_field(),
                                                                .stride_c = c.stride_field(),
                                                                .lda = a.ld_field()}));
            CHECK(f.download(info) == std::vector<std::int32_t>{0, 3, 0, 1});
            const auto got = f.download(memory);
            for (const std::size_t m : {0, 2}) {
                const auto inverse = c.matrix_of(got, m);
                CHECK((a[m] * inverse - reference<T>::identity(n)).norm() <=
                      tolerance<T>(n) * a[m].norm() * inverse.norm());
            }
        }
    });
}

// Other devices may divide in another way.
TEST_CASE_TEMPLATE("the CPU factorizes complex matrices with elements whose squares overflow or underflow", T,
                   std::complex<float>, std::complex<double>)
{
    using real = blas::real_part<T>;
    constexpr int exponent = std::numeric_limits<real>::max_exponent * 5 / 8;
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto& options : test::host_devices()) {
        device_fixture f(options);
        for (const auto rows : both) {
            CAPTURE(bool(rows));
            const auto a = well_conditioned<T>(5, 2, {0, 0}, rows, random);
            const auto wanted = f.download(factorized<T>(f, a, rows).memory);
            for (const int by : {-exponent, exponent}) {
                CAPTURE(by);
                auto scaled = a;
                for (std::size_t m = 0; m < a.count; ++m)
                    for (std::size_t j = 0; j < a.cols; ++j)
                        for (std::size_t i = 0; i < a.rows; ++i)
                            scaled(m, i, j) *= std::ldexp(real(1), by);
                const auto got = f.download(factorized<T>(f, scaled, rows).memory);
                for (std::size_t m = 0; m < a.count; ++m)
                    for (std::size_t j = 0; j < a.cols; ++j)
                        for (std::size_t i = 0; i < a.rows; ++i) {
                            // U is scaled as A is, L is not.
                            const T one = got[a.place(m, i, j)] * std::ldexp(real(1), i <= j ? -by : 0);
                            CHECK(std::abs(one - wanted[a.place(m, i, j)]) <= tolerance<T>(5) * a[m].norm());
                        }
            }
        }
    }
}

TEST_CASE("a singular matrix without zeros, whose elimination is exact")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto a = f.upload<double>({1, 1, 2, 2, /**/ 1, 3, 2, 4});
        const auto pivots = f.alloc<std::int32_t>(4);
        const auto info = f.alloc<std::int32_t>(2);
        REQUIRE(f.exec(
            blas::getrf_batched<double>{.a = a, .pivots = pivots, .info = info, .n = 2, .batch = 2, .stride_a = 4}));
        CHECK(f.download(info) == std::vector<std::int32_t>{2, 0});
        CHECK(f.download(pivots)[2] == 2);
    });
}

TEST_CASE("one factorization for all equations of a batch")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        // The exchanges of A are given for each equation.
        const auto a = f.upload<float>({0, 2, 4, 0});
        const auto pivots = f.upload<std::int32_t>({0, 0, 0, 0});
        const auto info = f.alloc<std::int32_t>(1);
        REQUIRE(f.exec(
            blas::getrf_batched<float>{.a = a, .pivots = pivots.subspan(0, 2), .info = info, .n = 2, .batch = 1}));
        REQUIRE(f.exec(memory::copy<std::int32_t>{pivots.subspan(0, 2), pivots.subspan(2, 2)}));
        const auto b = f.upload<float>({4, 2, 8, 6});
        REQUIRE(f.exec(blas::getrs_batched<float>{
            .a = a, .pivots = pivots, .b = b, .n = 2, .nrhs = 1, .batch = 2, .stride_b = 2}));
        CHECK(f.download(b) == std::vector<float>{1, 1, 3, 2});
    });
}

TEST_CASE("a pivot that is no row of the matrix counts as the nearest one")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        constexpr auto least = std::numeric_limits<std::int32_t>::min();
        constexpr auto most = std::numeric_limits<std::int32_t>::max();
        struct row {
            std::vector<std::int32_t> pivots;
            std::vector<float> exchanged, inverse;
        };
        const row rows[] = {{{0, 3}, {1, 2}, {1, 0, 0, 1}},
                            {{least, most}, {1, 2}, {1, 0, 0, 1}},
                            {{3, 2}, {2, 1}, {0, 1, 1, 0}},
                            {{most, most}, {2, 1}, {0, 1, 1, 0}}};
        const auto a = f.upload<float>({1, 0, 0, 1});
        const auto c = f.alloc<float>(4);
        const auto info = f.alloc<std::int32_t>(1);
        for (const auto& r : rows) {
            CAPTURE(r.pivots[0]);
            const auto pivots = f.upload(r.pivots);
            for (const auto trans : {transpose::no, transpose::yes}) {
                const auto b = f.upload<float>({1, 2});
                REQUIRE(f.exec(blas::getrs_batched<float>{
                    .a = a, .pivots = pivots, .b = b, .n = 2, .nrhs = 1, .batch = 1, .trans = trans}));
                CHECK(f.download(b) == r.exchanged);
            }
            REQUIRE(
                f.exec(blas::getri_batched<float>{.a = a, .pivots = pivots, .c = c, .info = info, .n = 2, .batch = 1}));
            CHECK(f.download(c) == r.inverse);
            CHECK(f.download(info) == std::vector<std::int32_t>{0});
            CHECK(f.download(pivots) == r.pivots);
        }
    });
}

TEST_CASE("a plan can factorize and solve, with the pivots in its own memory")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        plan_builder p("solve");
        const auto given = p.input<float>(8);
        const auto right = p.input<float>(4);
        const auto a = p.scratch<float>(8);
        const auto pivots = p.scratch<std::int32_t>(4);
        const auto x = p.output<float>(4);
        const auto info = p.output<std::int32_t>(2);
        p.add(memory::copy<float>{given, a});
        p.add(memory::copy<float>{right, x});
        p.add(blas::getrf_batched<float>{.a = a, .pivots = pivots, .info = info, .n = 2, .batch = 2, .stride_a = 4});
        p.add(blas::getrs_batched<float>{
            .a = a, .pivots = pivots, .b = x, .n = 2, .nrhs = 1, .batch = 2, .stride_a = 4, .stride_b = 2});
        const auto described = p.finish();
        REQUIRE_MESSAGE(described, described.error().message());
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        for (const float by : {1.0f, 2.0f}) {
            const std::vector<float> matrices{0, 2, 4, 0, /**/ by, 0, 0, 4};
            const std::vector<float> sides{4, 2, 2 * by, 8};
            std::vector<float> solution(4);
            std::vector<std::int32_t> first_zero(2, unset);
            REQUIRE(
                test::await(f.io, loaded.value().async_run(from(matrices), from(sides), to(solution), to(first_zero))));
            CHECK(solution == std::vector<float>{1, 1, 2, 2});
            CHECK(first_zero == std::vector<std::int32_t>{0, 0});
        }
    });
}

TEST_CASE("a plan can take pivots as an input, which are zeros while it is loaded")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        plan_builder p("solve");
        const auto a = p.input<float>(4);
        const auto pivots = p.input<std::int32_t>(2);
        const auto right = p.input<float>(2);
        const auto x = p.output<float>(2);
        const auto c = p.output<float>(4);
        const auto info = p.output<std::int32_t>(1);
        p.add(memory::copy<float>{right, x});
        p.add(blas::getrs_batched<float>{.a = a, .pivots = pivots, .b = x, .n = 2, .nrhs = 1, .batch = 1});
        p.add(blas::getri_batched<float>{.a = a, .pivots = pivots, .c = c, .info = info, .n = 2, .batch = 1});
        const auto described = p.finish();
        REQUIRE_MESSAGE(described, described.error().message());
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        const std::vector<float> factors{2, 0, 0, 4}, side{4, 2};
        const std::vector<std::int32_t> exchanged{2, 2};
        std::vector<float> solution(2), inverse(4);
        std::vector<std::int32_t> first_zero(1, unset);
        REQUIRE(test::await(f.io, loaded.value().async_run(from(factors), from(exchanged), from(side), to(solution),
                                                           to(inverse), to(first_zero))));
        CHECK(solution == std::vector<float>{1, 1});
        CHECK(inverse == std::vector<float>{0, 0.25f, 0.5f, 0});
        CHECK(first_zero == std::vector<std::int32_t>{0});
    });
}

TEST_CASE("the operands must not overlap")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(8, 1));
        const auto w = f.upload(std::vector<std::int32_t>(4, 1));
        CHECK(f.error_of(blas::getrf_batched<float>{
                  .a = v.subspan(0, 4), .pivots = w.subspan(0, 2), .info = w.subspan(1, 1), .n = 2, .batch = 1}) ==
              errc::overlap);
        CHECK(f.error_of(blas::getri_batched<float>{.a = v.subspan(0, 4),
                                                    .pivots = w.subspan(0, 2),
                                                    .c = v.subspan(3, 4),
                                                    .info = w.subspan(2, 1),
                                                    .n = 2,
                                                    .batch = 1}) == errc::overlap);
        CHECK(f.error_of(blas::getrs_nopivot_batched<float>{
                  .a = v.subspan(0, 4), .b = v.subspan(3, 2), .n = 2, .nrhs = 1, .batch = 1}) == errc::overlap);
        CHECK(f.download(v) == std::vector<float>(8, 1));
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_lu_batched
