#include "support/matmul_case.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace test_ops_blas_matmul {

namespace {

using namespace coaccel;
using blas::activation;
using blas::order;
using blas::transpose;
using test::activated;
using test::addend;
using test::device_fixture;
using test::engine;
using test::every_activation;
using test::every_order;
using test::matmul_config;

struct matmul_shape {
    std::size_t m, n, k;
};

struct matmul_factors {
    double alpha, beta;
};

constexpr matmul_shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {16, 16, 16}, {33, 17, 45}, {1, 19, 3}, {19, 1, 9}, {5, 6, 1}};
constexpr transpose ways[] = {transpose::no, transpose::yes, transpose::conjugate};
// Factors that are exact in every element type.
constexpr matmul_factors factors[] = {{1, 0}, {-0.5, 0}, {2, -0.25}, {0.5, 1}};

/// The same for real elements.
transpose transposed(engine& random)
{
    return random() % 2 == 0 ? transpose::yes : transpose::conjugate;
}

template <class Op>
void check_product(device_fixture& f, engine& random, bool gpu, const matmul_config& how)
{
    CAPTURE(how);
    error_code failed;
    CHECK(test::matmul_case<Op>(how, random).run(f, gpu, failed) == "");
}

/// Runs matmul on all operands, with and without a bias, each time with one of the activations and one kind of C.
template <class Op>
void check_products()
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        const bool gpu = test::is_gpu(f);
        for (const auto& s : shapes)
            for (const auto storage : every_order)
                for (const bool ta : {false, true})
                    for (const bool tb : {false, true})
                        for (const std::size_t extra : {0, 3})
                            for (const auto& by : factors)
                                check_product<Op>(f, random, gpu,
                                                  {.m = s.m,
                                                   .n = s.n,
                                                   .k = s.k,
                                                   .storage = storage,
                                                   .trans_a = ta ? transposed(random) : transpose::no,
                                                   .trans_b = tb ? transposed(random) : transpose::no,
                                                   .extra = extra,
                                                   .c = random() % 2 == 0 ? addend::previous : addend::own,
                                                   .bias = random() % 2 == 0,
                                                   .what = every_activation[random() % 3],
                                                   .alpha = by.alpha,
                                                   .beta = by.beta});
    });
}

/// Every kind of C, with and without a bias, with every activation.
template <class Op>
void check_ends()
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        const bool gpu = test::is_gpu(f);
        for (const auto storage : every_order)
            for (const auto c : {addend::previous, addend::own, addend::common})
                for (const bool bias : {false, true})
                    for (const auto what : every_activation)
                        for (const double beta : {0.0, 1.0})
                            check_product<Op>(f, random, gpu,
                                              {.m = 7,
                                               .n = 10,
                                               .k = 12,
                                               .storage = storage,
                                               .extra = 1,
                                               .batch = 2,
                                               .c = c,
                                               .bias = bias,
                                               .what = what,
                                               .alpha = 0.75,
                                               .beta = beta});
    });
}

} // namespace

TEST_SUITE_BEGIN("blas matmul");

TEST_CASE("matmul of f32 multiplies, adds a bias and applies an activation")
{
    check_products<blas::matmul<float>>();
    check_ends<blas::matmul<float>>();
}

TEST_CASE("matmul of f16")
{
    check_products<blas::matmul<half>>();
    check_products<blas::matmul<half, float>>();
    check_ends<blas::matmul<half>>();
    check_ends<blas::matmul<half, float>>();
}

TEST_CASE("matmul of bf16")
{
    check_products<blas::matmul<bfloat16>>();
    check_products<blas::matmul<bfloat16, float>>();
    check_ends<blas::matmul<bfloat16>>();
    check_ends<blas::matmul<bfloat16, float>>();
}

TEST_CASE("every activation with and without a bias, at known values")
{
    const std::vector<float> x{-100, -3, -1, -0.5F, -0.0F, 0, 0.25F, 1, 2, 100};
    const auto rows = x.size();
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto a = f.upload(x);
        const auto one = f.upload(std::vector<float>{1});
        const auto bias = f.upload(std::vector<float>(rows, 0.5F));
        const auto d = f.upload(std::vector<float>(rows, std::nanf("")));
        for (const auto what : every_activation)
            for (const double added : {0.0, 0.5}) {
                CAPTURE(what);
                CAPTURE(added);
                const double most = what == activation::gelu ? 0x1p-10 : 0x1p-22;
                blas::matmul<float> op{.a = a, .b = one, .d = d, .m = rows, .n = 1, .k = 1, .activation = what};
                if (added != 0)
                    op.bias = bias;
                REQUIRE(test::exec_listed(f, op));
                const auto got = f.download(d);
                for (std::size_t i = 0; i < rows; ++i)
                    CHECK(std::abs(got[i] - activated(what, x[i] + added)) <= most * std::abs(x[i] + added));
            }
    });
}

TEST_CASE("in row-major order a product is that of matrices stored row by row, with a bias along the columns")
{
    // Written out: A is 2 by 3, B 3 by 2.
    const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{7, 8, 9, 10, 11, 12}, bias{1000, 2000}, c{1, 2, 3, 4};
    const std::vector<float> wanted{58 + 10 + 1000, 64 + 20 + 2000, 139 + 30 + 1000, 154 + 40 + 2000};
    const std::vector<float> a_by_columns{1, 4, 2, 5, 3, 6};
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto da = f.upload(a), transposed_a = f.upload(a_by_columns), db = f.upload(b), dbias = f.upload(bias);
        const auto dc = f.upload(c), d = f.upload(std::vector<float>(4, std::nanf("")));
        blas::matmul<float> op{.a = da,
                               .b = db,
                               .d = d,
                               .c = dc,
                               .bias = dbias,
                               .m = 2,
                               .n = 2,
                               .k = 3,
                               .beta = 10,
                               .order = order::row_major};
        REQUIRE(test::exec_listed(f, op));
        CHECK(f.download(d) == wanted);
        // Stored row by row, this is the transposed A.
        op.a = transposed_a;
        op.trans_a = transpose::yes;
        REQUIRE(test::exec_listed(f, op));
        CHECK(f.download(d) == wanted);
    });
}

TEST_CASE_TEMPLATE("a batch has one bias, and its matrices are at their strides", Op, blas::matmul<float>,
                   blas::matmul<half>, blas::matmul<half, float>, blas::matmul<bfloat16>, blas::matmul<bfloat16, float>)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        const bool gpu = test::is_gpu(f);
        for (const auto storage : every_order)
            for (const bool one_a : {false, true})
                for (const bool one_b : {false, true})
                    for (const std::size_t gap : {0, 4})
                        for (const std::size_t extra : {0, 2})
                            for (const auto c : {addend::previous, addend::own, addend::common})
                                for (const double beta : {0.0, -0.5})
                                    check_product<Op>(f, random, gpu,
                                                      {.m = 7,
                                                       .n = 5,
                                                       .k = 9,
                                                       .storage = storage,
                                                       .trans_a = ways[random() % 3],
                                                       .trans_b = ways[random() % 3],
                                                       .extra = extra,
                                                       .gap = gap,
                                                       .batch = 3,
                                                       .one_a = one_a,
                                                       .one_b = one_b,
                                                       .c = c,
                                                       .bias = random() % 2 == 0,
                                                       .what = activation::relu,
                                                       .beta = beta});
    });
}

TEST_CASE("the stride of a single product has no meaning")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto two = f.upload(std::vector<float>{2});
        const auto c = f.upload(std::vector<float>{10});
        const auto d = f.upload(std::vector<float>{std::nanf("")});
        constexpr auto huge = ~std::uint64_t(0);
        REQUIRE(test::exec_listed(f, blas::matmul<float>{.a = two,
                                                         .b = two,
                                                         .d = d,
                                                         .c = c,
                                                         .m = 1,
                                                         .n = 1,
                                                         .k = 1,
                                                         .stride_a = huge,
                                                         .stride_b = huge,
                                                         .stride_c = huge,
                                                         .stride_d = huge,
                                                         .beta = 1}));
        CHECK(f.download(d) == std::vector<float>{14});
    });
}

TEST_CASE("matmul of i8 is exact in i32")
{
    struct row {
        std::size_t lines, others, k, extra, gap, batch;
        double alpha, beta;
    };
    // `lines`: the rows of D in column-major order, its columns in row-major order.
    constexpr row rows[] = {{4, 4, 4, 0, 0, 1, 1, 0},    {8, 3, 12, 1, 0, 1, 1, 1},  {4, 1, 8, 0, 1, 3, 1, 0},
                            {16, 13, 64, 2, 2, 2, 1, 1}, {8, 5, 16, 0, 0, 1, 2, -3}, {16, 16, 32, 1, 0, 2, -1, 2},
                            {8, 7, 4, 1, 1, 2, -2, 1}};
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& r : rows)
            for (const auto storage : every_order)
                for (const auto c : {addend::previous, addend::own, addend::common}) {
                    const bool by_rows = storage == order::row_major;
                    const auto way = transposed(random);
                    check_product<blas::matmul<std::int8_t>>(f, random, false,
                                                             {.m = by_rows ? r.others : r.lines,
                                                              .n = by_rows ? r.lines : r.others,
                                                              .k = r.k,
                                                              .storage = storage,
                                                              .trans_a = by_rows ? transpose::no : way,
                                                              .trans_b = by_rows ? way : transpose::no,
                                                              .extra = r.extra,
                                                              .gap = r.gap,
                                                              .batch = r.batch,
                                                              .one_a = r.batch > 1 && random() % 2 == 0,
                                                              .c = c,
                                                              .alpha = r.alpha,
                                                              .beta = r.beta});
                }
    });
}

TEST_CASE("sums of i8 that exceed i32 wrap around")
{
    constexpr std::uint64_t side = 4;
    const std::vector<std::int8_t> most(side * side, 127);
    constexpr std::int32_t product = side * 127 * 127;
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto a = f.upload(most);
        const auto d = f.upload(std::vector<std::int32_t>(side * side, 2147483647));
        REQUIRE(test::exec_listed(
            f, blas::matmul<std::int8_t>{
                   .a = a, .b = a, .d = d, .m = side, .n = side, .k = side, .beta = 1, .trans_a = transpose::yes}));
        CHECK(f.download(d) == std::vector<std::int32_t>(side * side, -2147483647 - 1 + (product - 1)));
    });
}

TEST_CASE("C and the operands of the end must not overlap the result")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto v = f.upload(std::vector<float>(20, 1));
        const auto factor = f.upload(std::vector<float>(4, 1));
        const blas::matmul<float> good{.a = factor, .b = factor, .d = v.subspan(0, 4), .m = 2, .n = 2, .k = 2};
        const auto refused = [&](const blas::matmul<float>& op, const std::string& message) {
            const auto ec = f.error_of(op);
            CHECK(ec == errc::overlap);
            CHECK(ec.message() == message);
        };
        auto op = good;
        op.c = v.subspan(3, 4);
        refused(op, "blas.matmul: d and c overlap");
        // Also if it is the whole of D: without a buffer, C is the previous D.
        op.c = v.subspan(0, 4);
        refused(op, "blas.matmul: d and c overlap");
        op = good;
        op.bias = v.subspan(2, 2);
        refused(op, "blas.matmul: d and bias overlap");
        op.bias = v.subspan(4, 2);
        op.c = v.subspan(4, 4);
        CHECK_FALSE(f.error_of(op));
        CHECK(f.download(v.subspan(4, 16)) == std::vector<float>(16, 1));
    });
}

TEST_CASE("an empty buffer or ref is not an optional operand without a buffer")
{
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto v = f.upload(std::vector<float>(4, 1)), d = f.upload(std::vector<float>(4, 5));
        const blas::matmul<float> good{.a = v, .b = v, .d = d, .m = 2, .n = 2, .k = 2, .beta = 1};
        auto op = good;
        op.bias = buffer<float>();
        CHECK(op.bias.has_value());
        const auto ec = f.error_of(op);
        CHECK(ec == errc::out_of_bounds);
        CHECK(ec.message() == "blas.matmul: bias has 0 elements, needs 2");
        op = good;
        op.c = ref<float>();
        CHECK(f.error_of(op).message() == "blas.matmul: c has 0 elements, needs 4");
        // A ref of the right length to no buffer.
        any_ref none = v.ref().raw();
        none.device = 0;
        op.c = ref<float>::from_raw(none);
        CHECK(f.error_of(op) == errc::invalid_argument);
        CHECK(f.error_of(op).message() == "blas.matmul: c names no buffer");
        CHECK(f.download(d) == std::vector<float>(4, 5));
        CHECK_FALSE(f.error_of(good));
    });
}

TEST_CASE("the factors of a product of i8 can be parameters of a plan")
{
    using product = blas::matmul<std::int8_t, std::int32_t>;
    constexpr std::uint64_t side = 4;
    plan_builder b("product of i8");
    const auto a = b.input<std::int8_t>(side * side, "a");
    const auto before = b.input<std::int32_t>(side * side, "before");
    const auto alpha = b.parameter<std::int32_t>("alpha");
    const auto beta = b.parameter<std::int32_t>("beta");
    const auto one = b.constant<std::int8_t>(std::vector<std::int8_t>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
    const auto c = b.output<std::int32_t>(side * side, "c");
    b.add(memory::copy<std::int32_t>{before, c});
    b.add(product{.a = a, .b = one, .d = c, .m = side, .n = side, .k = side, .beta = 1, .trans_a = transpose::yes},
          bind(&product::alpha, alpha), bind(&product::beta, beta));
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    std::vector<std::int8_t> factors;
    std::vector<std::int32_t> kept;
    for (int i = 0; i < int(side * side); ++i) {
        factors.push_back(static_cast<std::int8_t>(i - 8));
        kept.push_back(100 * i);
    }
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        struct scale {
            std::int32_t alpha, beta;
        };
        for (const auto by : {scale{2, -3}, scale{1, 0}, scale{-1, 1}}) {
            CAPTURE(by.alpha);
            std::vector<std::int32_t> got(side * side, -1);
            const auto done = test::await(
                f.io, loaded.value().async_run(from(factors), from(kept), to(got), value(by.alpha), value(by.beta)));
            REQUIRE_MESSAGE(done, done.error().message());
            for (std::uint64_t j = 0; j < side; ++j)
                for (std::uint64_t i = 0; i < side; ++i)
                    CHECK(got[i + j * side] == by.alpha * factors[j + i * side] + by.beta * kept[i + j * side]);
        }
    });
}

TEST_CASE("a fused layer in a plan has a parameter for its factor")
{
    using fused = blas::matmul<float>;
    plan_builder b("fused layer");
    const auto x = b.input<float>(4, "x");
    const auto by = b.parameter<float>("by");
    const auto w = b.constant<float>(std::vector<float>{1, 2, 3, -4});
    const auto bias = b.constant<float>(std::vector<float>{0.5F, 1});
    const auto y = b.output<float>(4, "y");
    b.add(fused{.a = w, .b = x, .d = y, .bias = bias, .m = 2, .n = 2, .k = 2, .activation = activation::relu},
          bind(&fused::alpha, by));
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        for (const float alpha : {1.0F, -2.0F}) {
            const std::vector<float> given{1, 2, 3, 0};
            std::vector<float> got(4, -1);
            REQUIRE(test::await(f.io, loaded.value().async_run(from(given), to(got), value(alpha))));
            const auto relu = [](float v) { return v > 0 ? v : 0; };
            CHECK(got == std::vector<float>{relu(alpha * 7 + 0.5F), relu(alpha * -6 + 1), relu(alpha * 3 + 0.5F),
                                            relu(alpha * 6 + 1)});
        }
    });
}

TEST_SUITE_END();

} // namespace test_ops_blas_matmul
