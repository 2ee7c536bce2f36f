#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/blas/level3_lists.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace test_ops_blas_level3_lists {

namespace {

using namespace coaccel;
using blas::transpose;
using test::device_fixture;
using test::engine;
using test::every_scale;
using test::every_transpose;
using test::scale;

struct sides {
    std::size_t m, n, k;
};

constexpr sides every_size[] = {{1, 1, 1}, {3, 5, 7}, {16, 16, 16}, {33, 17, 45}, {1, 19, 3}, {19, 1, 9}, {5, 6, 1}};
constexpr std::size_t counts[] = {1, 2, 32};

enum class buffers { one, different };

/// One product.
template <class T>
struct product {
    sides size;
    scale by;
    transpose trans_a, trans_b;
    test::matrix<T> a, b, c;

    /// What is multiplied by zero is poisoned.
    product(const sides& s, const scale& factors, transpose ta, transpose tb, std::size_t extra, engine& random)
        : size(s), by(factors), trans_a(ta), trans_b(tb), a(factor(s.m, s.k, ta, extra, random)),
          b(factor(s.k, s.n, tb, 2 * extra, random)), c(test::operand<T>(s.m, s.n, extra, by.beta, random))
    {}

    test::expectation_of<test::wide<T>> expected(std::size_t i, std::size_t j) const
    {
        const auto number = [](double f) { return test::wide<T>(test::number(test::factor<T>(f))); };
        auto e = test::kept(c, number(by.beta), i, j);
        for (std::size_t p = 0; p < size.k && by.alpha != 0; ++p)
            e.add(number(by.alpha) * test::taken(a, trans_a, i, p) * test::taken(b, trans_b, p, j));
        return e;
    }

private:
    test::matrix<T> factor(std::size_t rows, std::size_t cols, transpose t, std::size_t extra, engine& random) const
    {
        const bool swapped = t != transpose::no;
        return test::operand<T>(swapped ? cols : rows, swapped ? rows : cols, extra, by.alpha, random);
    }
};

/// The matrices of products on a device, in one buffer for all of them or in one for each.
template <class T>
class placed_products {
public:
    placed_products(device_fixture& f, const std::vector<product<T>>& all, buffers how) : all_(all)
    {
        std::vector<const test::matrix<T>*> matrices;
        for (const auto& p : all)
            for (const auto* m : {&p.a, &p.b, &p.c})
                matrices.push_back(m);
        std::vector<T> joined;
        for (const auto* m : matrices) {
            offsets_.push_back(joined.size());
            joined.insert(joined.end(), m->data.begin(), m->data.end());
            if (how == buffers::different) {
                buffers_.push_back(f.upload(joined));
                joined.clear();
            }
        }
        if (how == buffers::one)
            buffers_.push_back(f.upload(joined));
        else
            std::ranges::fill(offsets_, std::size_t(0));
    }

    ref<T> a(std::size_t i) const { return part(3 * i, all_[i].a); }
    ref<T> b(std::size_t i) const { return part(3 * i + 1, all_[i].b); }
    ref<T> c(std::size_t i) const { return part(3 * i + 2, all_[i].c); }

    /// Compares all results, and checks that no other element was written. Returns the first difference, or an empty
    /// string.
    std::string difference(device_fixture& f) const
    {
        std::vector<std::vector<T>> got;
        for (const auto& b : buffers_)
            got.push_back(f.download(b));
        const auto found = [&](std::size_t which, const test::matrix<T>& m) {
            const auto& from = got[buffers_.size() == 1 ? 0 : which];
            const auto first = from.begin() + static_cast<std::ptrdiff_t>(offsets_[which]);
            return std::vector<T>(first, first + static_cast<std::ptrdiff_t>(m.data.size()));
        };
        for (std::size_t i = 0; i < all_.size(); ++i) {
            const product<T>& p = all_[i];
            if (!std::ranges::equal(found(3 * i, p.a), p.a.data, test::same_bits<T>) ||
                !std::ranges::equal(found(3 * i + 1, p.b), p.b.data, test::same_bits<T>))
                return "a factor of product " + std::to_string(i) + " was written";
            const auto wrong =
                p.c.difference(found(3 * i + 2, p.c), p.size.k + 1,
                               [&](std::size_t row, std::size_t column) { return p.expected(row, column); });
            if (!wrong.empty())
                return "product " + std::to_string(i) + ": " + wrong;
        }
        return {};
    }

private:
    ref<T> part(std::size_t which, const test::matrix<T>& m) const
    {
        return buffers_[buffers_.size() == 1 ? 0 : which].subspan(offsets_[which] + test::margin, m.extent);
    }

    const std::vector<product<T>>& all_;
    std::vector<std::size_t> offsets_;
    std::vector<buffer<T>> buffers_;
};

/// Products of the same sizes, in one op.
template <class T>
void check_batch(device_fixture& f, engine& random, const sides& s, const scale& by, std::size_t count, buffers how,
                 transpose ta, transpose tb, std::size_t extra)
{
    INFO("m ", s.m, ", n ", s.n, ", k ", s.k, ", alpha ", by.alpha, ", beta ", by.beta, ", count ", count, ", buffers ",
         int(how), ", trans_a ", int(ta), ", trans_b ", int(tb), ", extra ", extra);
    std::vector<product<T>> all;
    for (std::size_t i = 0; i < count; ++i)
        all.emplace_back(s, by, ta, tb, extra, random);
    const placed_products<T> placed(f, all, how);
    blas::gemm_batched<T> op{.m = s.m,
                             .n = s.n,
                             .k = s.k,
                             .alpha = test::factor<T>(by.alpha),
                             .beta = test::factor<T>(by.beta),
                             .trans_a = ta,
                             .trans_b = tb,
                             .lda = all[0].a.ld_field(),
                             .ldb = all[0].b.ld_field(),
                             .ldc = all[0].c.ld_field()};
    for (std::size_t i = 0; i < count; ++i)
        op.add(placed.a(i), placed.b(i), placed.c(i));
    REQUIRE(test::exec_listed(f, op));
    CHECK(placed.difference(f) == "");
}

template <class T>
blas::gemm<T> gemm_of(const product<T>& p, const placed_products<T>& placed, std::size_t i)
{
    return {.a = placed.a(i),
            .b = placed.b(i),
            .c = placed.c(i),
            .m = p.size.m,
            .n = p.size.n,
            .k = p.size.k,
            .alpha = test::factor<T>(p.by.alpha),
            .beta = test::factor<T>(p.by.beta),
            .trans_a = p.trans_a,
            .trans_b = p.trans_b,
            .lda = p.a.ld_field(),
            .ldb = p.b.ld_field(),
            .ldc = p.c.ld_field()};
}

transpose any_way(engine& random)
{
    return every_transpose[random() % 3];
}

/// Two products of 2 by 2 matrices in one buffer of 40 elements.
template <class Op>
Op two_products(const buffer<float>& v)
{
    const auto at = [&](std::size_t i) { return v.subspan(4 * i, 4); };
    Op op{};
    if constexpr (requires { op.add(at(0), at(1), at(2)); }) {
        op.m = op.n = op.k = 2;
        op.add(at(0), at(1), at(2)).add(at(0), at(1), at(3));
    } else {
        const auto product = [&](std::size_t c) {
            return blas::gemm<float>{.a = at(0), .b = at(1), .c = at(c), .m = 2, .n = 2, .k = 2};
        };
        op.add(product(2)).add(product(3));
    }
    return op;
}

} // namespace

TEST_SUITE_BEGIN("blas level 3, lists of products");

TEST_CASE_TEMPLATE("gemm_batched computes every product", T, float, double, half, bfloat16, std::complex<float>,
                   std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const auto& s : every_size)
            for (const auto& by : every_scale)
                for (const std::size_t count : counts)
                    for (const auto how : {buffers::one, buffers::different}) {
                        // Uploads of many buffers take long.
                        if (count == 32 && how == buffers::different && random() % 4 != 0)
                            continue;
                        check_batch<T>(f, random, s, by, count, how, any_way(random), any_way(random),
                                       random() % 2 == 0 ? 0 : 3);
                    }
    });
}

TEST_CASE_TEMPLATE("gemm_batched transposes", T, float, double, half, bfloat16, std::complex<float>,
                   std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const auto ta : every_transpose)
            for (const auto tb : every_transpose)
                for (const std::size_t extra : {0, 3})
                    for (const auto how : {buffers::one, buffers::different})
                        check_batch<T>(f, random, {7, 5, 9}, {2, -0.25}, 3, how, ta, tb, extra);
    });
}

TEST_CASE_TEMPLATE("gemm_grouped computes products of different sizes, each with its own factors", T, float, double,
                   half, bfloat16, std::complex<float>, std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const std::size_t count : counts)
            for (const auto how : {buffers::one, buffers::different})
                for (std::size_t round = 0; round < (count == 32 ? 6 : 40); ++round) {
                    CAPTURE(count);
                    CAPTURE(how);
                    std::vector<product<T>> all;
                    for (std::size_t i = 0; i < count; ++i)
                        all.emplace_back(every_size[random() % std::size(every_size)],
                                         every_scale[random() % std::size(every_scale)], any_way(random),
                                         any_way(random), random() % 2 == 0 ? 0 : 3, random);
                    const placed_products<T> placed(f, all, how);
                    blas::gemm_grouped<T> op;
                    for (std::size_t i = 0; i < count; ++i)
                        op.add(gemm_of(all[i], placed, i));
                    REQUIRE(test::exec_listed(f, op));
                    CHECK(placed.difference(f) == "");
                }
    });
}

TEST_CASE("with alpha zero for all products no factor is read, and with beta zero no result")
{
    const auto check = []<class T>(T) {
        test::on_every_device([](device_fixture& f, engine& random) {
            for (const scale by : {scale{0, 0}, scale{0, 2}, scale{0, 1}, scale{1, 0}}) {
                CAPTURE(by.alpha);
                CAPTURE(by.beta);
                std::vector<product<T>> all;
                for (std::size_t i = 0; i < 5; ++i)
                    all.emplace_back(sides{4 + i, 9 - i, 6}, by, any_way(random), any_way(random), i % 2, random);
                const placed_products<T> placed(f, all, buffers::one);
                blas::gemm_grouped<T> op;
                for (std::size_t i = 0; i < all.size(); ++i)
                    op.add(gemm_of(all[i], placed, i));
                REQUIRE(test::exec_listed(f, op));
                CHECK(placed.difference(f) == "");
                check_batch<T>(f, random, {8, 8, 8}, by, 6, buffers::one, any_way(random), any_way(random), 1);
            }
        });
    };
    check(float());
    check(double());
    check(half());
    check(bfloat16());
    check(std::complex<float>());
    check(std::complex<double>());
}

TEST_CASE_TEMPLATE("every kind of math gives the same products of whole numbers", T, float, double, half, bfloat16,
                   std::complex<float>, std::complex<double>)
{
    using coaccel::blas::math;
    constexpr std::size_t side = 8;
    const auto element = [](int value) { return T(static_cast<blas::scalar<T>>(static_cast<float>(value))); };
    test::on_every_device([&](device_fixture& f, engine&) {
        std::vector<T> a, b, wanted(side * side);
        for (int i = 0; i < int(side * side); ++i) {
            a.push_back(element(i % 5 - 2));
            b.push_back(element(i % 3 - 1));
        }
        for (std::size_t j = 0; j < side; ++j)
            for (std::size_t i = 0; i < side; ++i) {
                auto sum = test::number(T{});
                for (std::size_t p = 0; p < side; ++p)
                    sum += test::number(a[i + p * side]) * test::number(b[p + j * side]);
                wanted[i + j * side] = element(static_cast<int>(std::real(sum)));
            }
        const auto da = f.upload(a), db = f.upload(b);
        for (const auto how : {math::standard, math::tf32, math::pedantic}) {
            CAPTURE(how);
            const auto first = f.alloc<T>(side * side), second = f.alloc<T>(side * side);
            blas::gemm_batched<T> batched{.m = side, .n = side, .k = side, .math = how};
            REQUIRE(test::exec_listed(f, batched.add(da, db, first).add(da, db, second)));
            CHECK(f.download(first) == wanted);
            CHECK(f.download(second) == wanted);
            const auto third = f.alloc<T>(side * side);
            blas::gemm_grouped<T> grouped{.math = how};
            grouped.add(blas::gemm<T>{.a = da, .b = db, .c = third, .m = side, .n = side, .k = side});
            REQUIRE(test::exec_listed(f, grouped));
            CHECK(f.download(third) == wanted);
        }
    });
}

TEST_CASE_TEMPLATE("products may share factors, and results must not overlap", Op, blas::gemm_batched<float>,
                   blas::gemm_grouped<float>)
{
    const std::string name(Op::name);
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto v = f.upload(std::vector<float>(40, 1));
        const auto refused = [&](const Op& op, const std::string& fields) {
            const auto ec = f.error_of(op);
            CHECK(ec == errc::overlap);
            CHECK(ec.message() == name + ": " + fields + " overlap");
        };
        const auto good = two_products<Op>(v);
        auto op = good;
        op.c[1] = v.subspan(11, 4);
        refused(op, "c[0] and c[1]");
        op = good;
        op.c[1] = v.subspan(8, 4);
        refused(op, "c[0] and c[1]");
        op = good;
        op.c[1] = v.subspan(2, 4);
        refused(op, "a[0] and c[1]");
        op = good;
        op.b[1] = v.subspan(15, 4);
        refused(op, "b[1] and c[1]");
        CHECK(f.download(v) == std::vector<float>(40, 1));
        REQUIRE_FALSE(f.error_of(good));
        auto wanted = std::vector<float>(40, 1);
        std::fill_n(wanted.begin() + 8, 8, 2.0F);
        CHECK(f.download(v) == wanted);
    });
}

TEST_CASE_TEMPLATE("a list has 1 to 32 products, all with their operands", Op, blas::gemm_batched<float>,
                   blas::gemm_grouped<float>)
{
    const std::string name(Op::name);
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto v = f.upload(std::vector<float>(40, 1));
        const auto refused = [&](const Op& op, errc code, const std::string& message) {
            const auto ec = f.error_of(op);
            CHECK(ec == code);
            CHECK(ec.message() == name + ": " + message);
        };
        const auto good = two_products<Op>(v);
        refused(Op{}, errc::invalid_argument, "count is 0");
        auto op = good;
        for (int i = 2; i < 33; ++i)
            if constexpr (requires { op.add(v, v, v); })
                op.add(v.subspan(0, 4), v.subspan(4, 4), v.subspan(8, 4));
            else
                op.add({.a = v.subspan(0, 4), .b = v.subspan(4, 4), .c = v.subspan(8, 4), .m = 2, .n = 2, .k = 2});
        CHECK(op.count == 33);
        refused(op, errc::invalid_argument, "count is 33, must be at most 32");
        op = good;
        op.a[1] = {};
        refused(op, errc::invalid_argument, "a[1] has no buffer");
        op = good;
        op.b[0] = {};
        refused(op, errc::invalid_argument, "b[0] has no buffer");
        op = good;
        op.c[1] = {};
        refused(op, errc::invalid_argument, "c[1] has no buffer");
        op = good;
        op.count = 1;
        refused(op, errc::invalid_argument, "product 1 has a buffer, but count is 1");
        op = good;
        op.c[31] = v.subspan(20, 4);
        refused(op, errc::invalid_argument, "product 31 has a buffer, but count is 2");
        op = good;
        op.a[0] = ref<float>();
        refused(op, errc::out_of_bounds, "a[0] has 0 elements, needs 4");
        any_ref none = v.subspan(0, 4).raw();
        none.device = 0;
        op.a[0] = ref<float>::from_raw(none);
        refused(op, errc::invalid_argument, "a[0] names no buffer");
        CHECK(f.download(v) == std::vector<float>(40, 1));
    });
}

TEST_CASE("a plan with lists of products has factors as parameters, and results in slots of any kind")
{
    using batched = blas::gemm_batched<float>;
    using grouped = blas::gemm_grouped<float>;
    plan_builder b("lists");
    const auto x = b.input<float>(4, "x");
    const auto y = b.input<float>(4, "y");
    const auto one = b.constant<float>(std::vector<float>{1, 0, 0, 1});
    const auto swap = b.constant<float>(std::vector<float>{0, 1, 1, 0});
    const auto h = b.scratch<float>(4);
    const auto z = b.output<float>(8, "z");
    const auto sum = b.output<float>(2, "sum");
    const auto kept = b.state<float>(std::vector<float>{10, 20, 30, 40}, "kept");
    const auto alpha = b.parameter<float>("alpha");
    const auto beta = b.parameter<float>("beta");
    grouped copies;
    copies.add(blas::gemm<float>{.a = x, .b = one, .c = h, .m = 2, .n = 2, .k = 2})
        .add(blas::gemm<float>{.a = y, .b = one.first(2), .c = sum, .m = 2, .n = 1, .k = 2, .alpha = 3})
        .add(blas::gemm<float>{.a = one, .b = swap, .c = z, .m = 2, .n = 4, .k = 1, .ldb = 1});
    b.add(copies);
    batched products{.m = 2, .n = 2, .k = 2};
    products.add(h, swap, z.first(4)).add(y, one, z.subspan(4, 4)).add(x, one, kept);
    b.add(products, bind(&batched::alpha, alpha), bind(&batched::beta, beta));
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    CHECK(described.value().capturable());
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        const std::vector<float> given{1, 2, 3, 4}, others{5, 6, 7, 8};
        // The product of the first column of `one` and the row `swap`.
        const std::vector<float> before{0, 0, 1, 0, 1, 0, 0, 0};
        for (const scale by : {scale{1, 0}, scale{2, -1}, scale{0, 1}, scale{0, 0}}) {
            CAPTURE(by.alpha);
            std::vector<float> got(8), sums(2);
            REQUIRE(test::await(f.io, loaded.value().async_run(from(given), from(others), to(got), to(sums),
                                                               value(static_cast<float>(by.alpha)),
                                                               value(static_cast<float>(by.beta)))));
            const float a = static_cast<float>(by.alpha), c = static_cast<float>(by.beta);
            const std::vector<float> first{3, 4, 1, 2};
            std::vector<float> wanted(8);
            for (std::size_t i = 0; i < 4; ++i) {
                wanted[i] = a * first[i] + c * before[i];
                wanted[4 + i] = a * others[i] + c * before[4 + i];
            }
            CHECK(got == wanted);
            CHECK(sums == std::vector<float>{15, 18});
        }
    });
}

TEST_CASE("lists of products can be recorded in a graph over existing buffers")
{
    test::on_every_device([](device_fixture& f, engine&) {
        const auto x = f.upload(std::vector<float>{1, 2, 3, 4}), one = f.upload(std::vector<float>{1, 0, 0, 1});
        const auto y = f.upload(std::vector<float>(4)), z = f.upload(std::vector<float>(4));
        blas::gemm_batched<float> batched{.m = 2, .n = 2, .k = 2, .beta = 1};
        batched.add(x, one, y).add(one, x, z);
        blas::gemm_grouped<float> grouped;
        grouped.add(blas::gemm<float>{.a = x, .b = one, .c = y, .m = 2, .n = 2, .k = 2, .beta = 2});
        op_list ops;
        ops.add(batched);
        ops.add(grouped);
        const auto recorded = test::await(f.io, f.gpu.async_record(std::move(ops)));
        REQUIRE_MESSAGE(recorded, recorded.error().message());
        for (int i = 0; i < 2; ++i)
            REQUIRE(test::await(f.io, f.gpu.async_exec(recorded.value())));
        // z = 2 x; y is twice what it was plus x, with three times x added.
        CHECK(f.download(z) == std::vector<float>{2, 4, 6, 8});
        CHECK(f.download(y) == std::vector<float>{9, 18, 27, 36});
    });
}

TEST_SUITE_END();

} // namespace test_ops_blas_level3_lists
