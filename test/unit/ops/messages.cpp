#include "support/refusals.hpp"

#include <coaccel/core/detail/adopt_op.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/interop.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace test_ops_messages {

// The error messages of refused ops: op, field and value, for every op and every reason.
namespace {

using namespace coaccel;
using blas::transpose;
using test::elements;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

struct row {
    error_code got;
    errc code;
    std::string message;
};

void check(const std::vector<row>& rows)
{
    for (const row& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
        CHECK(r.got.default_error_condition() == make_error_code(r.code).default_error_condition());
    }
}

template <class Op>
std::vector<row> one_vector()
{
    const auto x = elements(8, 0);
    const std::string op(Op::name);
    return {
        {Op{.x = x}.check(), errc::invalid_argument, op + ": n is 0"},
        {Op{.x = x, .n = 8, .incx = 0}.check(), errc::invalid_argument, op + ": incx is 0"},
        {Op{.x = x, .n = 9}.check(), errc::out_of_bounds, op + ": x has 8 elements, needs 9"},
        {Op{.x = x, .n = 5, .incx = -2}.check(), errc::out_of_bounds, op + ": x has 8 elements, needs 9"},
        {Op{.x = x, .n = huge, .incx = 2}.check(), errc::size_overflow,
         op + ": the number of elements that x needs overflows 64 bits"},
    };
}

template <class Op>
std::vector<row> two_vectors()
{
    const auto x = elements(8, 0);
    const auto y = elements(8, 1);
    const std::string op(Op::name);
    return {
        {Op{.x = x, .y = y}.check(), errc::invalid_argument, op + ": n is 0"},
        {Op{.x = x, .y = y, .n = 8, .incx = 0}.check(), errc::invalid_argument, op + ": incx is 0"},
        {Op{.x = x, .y = y, .n = 8, .incy = 0}.check(), errc::invalid_argument, op + ": incy is 0"},
        {Op{.x = x.first(7), .y = y, .n = 8}.check(), errc::out_of_bounds, op + ": x has 7 elements, needs 8"},
        {Op{.x = x, .y = y.first(7), .n = 8}.check(), errc::out_of_bounds, op + ": y has 7 elements, needs 8"},
        {Op{.x = x, .y = y, .n = huge, .incx = 2}.check(), errc::size_overflow,
         op + ": the number of elements that x needs overflows 64 bits"},
        {Op{.x = x, .y = y, .n = 3, .incy = std::numeric_limits<std::int64_t>::min()}.check(), errc::size_overflow,
         op + ": the number of elements that y needs overflows 64 bits"},
    };
}

template <class Op>
row touching()
{
    const auto x = elements(8, 0);
    return {Op{.x = x, .y = x, .n = 8}.check(), errc::overlap,
            std::string(Op::name) + ": x and y have an element in common"};
}

template <class Op>
Op changed(Op op, void (*change)(Op&))
{
    change(op);
    return op;
}

template <class Op>
row refused(const Op& good, void (*change)(Op&), errc code, const std::string& message)
{
    REQUIRE_FALSE(good.check());
    return {changed(good, change).check(), code, std::string(Op::name) + ": " + message};
}

/// The cases common to gemm and its batched form.
template <class Op>
std::vector<row> product_rows(const Op& good)
{
    const auto bad = [&good](void (*change)(Op&), errc code, const std::string& message) {
        return refused(good, change, code, message);
    };
    return {
        bad([](Op& o) { o.m = 0; }, errc::invalid_argument, "m is 0"),
        bad([](Op& o) { o.n = 0; }, errc::invalid_argument, "n is 0"),
        bad([](Op& o) { o.k = 0; }, errc::invalid_argument, "k is 0"),
        bad([](Op& o) { o.trans_a = transpose(3); }, errc::invalid_argument,
            "trans_a is 3, which is not a blas::transpose"),
        bad([](Op& o) { o.trans_b = transpose(255); }, errc::invalid_argument,
            "trans_b is 255, which is not a blas::transpose"),
        bad([](Op& o) { o.math = blas::math(3); }, errc::invalid_argument, "math is 3, which is not a blas::math"),
        bad([](Op& o) { o.k = huge; }, errc::size_overflow,
            "m * n * k overflows 64 bits: m is 3, n is 5, k is 18446744073709551615"),
        bad([](Op& o) { o.lda = 2; }, errc::leading_dimension, "lda is 2, a has 3 rows"),
        bad([](Op& o) { o.ldb = 3; }, errc::leading_dimension, "ldb is 3, b has 4 rows"),
        bad([](Op& o) { o.ldc = 1; }, errc::leading_dimension, "ldc is 1, c has 3 rows"),
        bad([](Op& o) { o.lda = 2, o.trans_a = transpose::yes; }, errc::leading_dimension, "lda is 2, a has 4 rows"),
        bad([](Op& o) { o.a = elements(11, 0); }, errc::out_of_bounds,
            requires { good.batch; } ? "a has 11 elements, needs 24" : "a has 11 elements, needs 12"),
        bad([](Op& o) { o.b = elements(19, 0); }, errc::out_of_bounds,
            requires { good.batch; } ? "b has 19 elements, needs 40" : "b has 19 elements, needs 20"),
        bad([](Op& o) { o.c = elements(14, 0); }, errc::out_of_bounds,
            requires { good.batch; } ? "c has 14 elements, needs 30" : "c has 14 elements, needs 15"),
        bad([](Op& o) { o.ldb = huge; }, errc::size_overflow, "the number of elements that b needs overflows 64 bits"),
    };
}

} // namespace

TEST_SUITE_BEGIN("messages of refused ops");

TEST_CASE("errors of vector ops name the offending field")
{
    check(one_vector<blas::scal<float>>());
    check(one_vector<blas::nrm2<float>>());
    check(one_vector<blas::asum<float>>());
    check(one_vector<blas::iamax<float>>());
    check(one_vector<blas::iamin<float>>());
    check(two_vectors<blas::axpy<float>>());
    check(two_vectors<blas::copy<float>>());
    check(two_vectors<blas::swap<float>>());
    check(two_vectors<blas::rot<float>>());
    check(two_vectors<blas::dot<float>>());
    check({touching<blas::axpy<float>>(), touching<blas::copy<float>>(), touching<blas::swap<float>>(),
           touching<blas::rot<float>>()});
}

TEST_CASE("errors of gemv and ger name the offending field")
{
    using gemv = blas::gemv<float>;
    using ger = blas::ger<float>;
    const gemv v{.a = elements(12, 0), .x = elements(4, 1), .y = elements(3, 2), .m = 3, .n = 4};
    const ger g{.x = elements(3, 0), .y = elements(4, 1), .a = elements(12, 2), .m = 3, .n = 4};
    check({
        refused<gemv>(
            v, [](gemv& o) { o.trans = transpose(9); }, errc::invalid_argument,
            "trans is 9, which is not a blas::transpose"),
        refused<gemv>(
            v, [](gemv& o) { o.m = 0; }, errc::invalid_argument, "m is 0"),
        refused<gemv>(
            v, [](gemv& o) { o.n = 0; }, errc::invalid_argument, "n is 0"),
        refused<gemv>(
            v, [](gemv& o) { o.lda = 2; }, errc::leading_dimension, "lda is 2, a has 3 rows"),
        refused<gemv>(
            v, [](gemv& o) { o.lda = 4; }, errc::out_of_bounds, "a has 12 elements, needs 15"),
        refused<gemv>(
            v, [](gemv& o) { o.incx = 0; }, errc::invalid_argument, "incx is 0"),
        refused<gemv>(
            v, [](gemv& o) { o.incy = 0; }, errc::invalid_argument, "incy is 0"),
        refused<gemv>(
            v, [](gemv& o) { o.incx = 2; }, errc::out_of_bounds, "x has 4 elements, needs 7"),
        refused<gemv>(
            v, [](gemv& o) { o.trans = transpose::yes; }, errc::out_of_bounds, "y has 3 elements, needs 4"),
        refused<ger>(
            g, [](ger& o) { o.m = 0; }, errc::invalid_argument, "m is 0"),
        refused<ger>(
            g, [](ger& o) { o.n = 0; }, errc::invalid_argument, "n is 0"),
        refused<ger>(
            g, [](ger& o) { o.lda = 1; }, errc::leading_dimension, "lda is 1, a has 3 rows"),
        refused<ger>(
            g, [](ger& o) { o.a = elements(11, 2); }, errc::out_of_bounds, "a has 11 elements, needs 12"),
        refused<ger>(
            g, [](ger& o) { o.incx = 0; }, errc::invalid_argument, "incx is 0"),
        refused<ger>(
            g, [](ger& o) { o.incy = -3; }, errc::out_of_bounds, "y has 4 elements, needs 10"),
    });
}

TEST_CASE("errors of matrix products name the offending field")
{
    using batched = blas::gemm_strided_batched<float>;
    check(product_rows(
        blas::gemm<float>{.a = elements(12, 0), .b = elements(20, 1), .c = elements(15, 2), .m = 3, .n = 5, .k = 4}));
    const batched good{.a = elements(24, 0),
                       .b = elements(40, 1),
                       .c = elements(30, 2),
                       .m = 3,
                       .n = 5,
                       .k = 4,
                       .batch = 2,
                       .stride_a = 12,
                       .stride_b = 20,
                       .stride_c = 15};
    check(product_rows(good));
    check({
        refused<batched>(
            good, [](batched& o) { o.batch = 0; }, errc::invalid_argument, "batch is 0"),
        refused<batched>(
            good, [](batched& o) { o.stride_c = 14; }, errc::leading_dimension,
            "stride_c is 14, one matrix of c has 15 elements"),
        refused<batched>(
            good, [](batched& o) { o.stride_a = 13; }, errc::out_of_bounds, "a has 24 elements, needs 25"),
        refused<batched>(
            good, [](batched& o) { o.stride_b = huge; }, errc::size_overflow,
            "the number of elements that b needs overflows 64 bits"),
    });
}

TEST_CASE("errors of memory ops name the offending field or range")
{
    const auto ten = elements(10, 0);
    const auto twelve = elements(12, 1);
    float host[10]{};
    using memory::advice;
    using memory::place;
    check({
        {memory::fill<float>{}.check(), errc::invalid_argument, "memory.fill: dst has 0 elements"},
        {memory::copy<float>{}.check(), errc::invalid_argument, "memory.copy: src has 0 elements"},
        {memory::copy<float>{.src = twelve, .dst = ten}.check(), errc::length_mismatch,
         "memory.copy: dst has 10 elements, src 12"},
        {memory::prefetch<float>{}.check(), errc::invalid_argument, "memory.prefetch: target has 0 elements"},
        {memory::prefetch<float>{.target = ten, .to = place(2)}.check(), errc::invalid_argument,
         "memory.prefetch: to is 2, which is not a memory::place"},
        {memory::advise<float>{}.check(), errc::invalid_argument, "memory.advise: target has 0 elements"},
        {memory::advise<float>{.target = ten, .what = advice(7)}.check(), errc::invalid_argument,
         "memory.advise: what is 7, which is not a memory::advice"},
        {detail::allocate_op{.type = dtype::f32}.check(), errc::invalid_argument, "memory.allocate: count is 0"},
        {detail::allocate_op{.count = huge, .type = dtype::f64}.check(), errc::size_overflow,
         "memory.allocate: count is 18446744073709551615, too many elements of 8 bytes"},
        {detail::adopt_op{.count = 1, .type = dtype::f32}.check(), errc::invalid_argument,
         "memory.adopt: pointer is null"},
        {detail::adopt_op{.pointer = host, .type = dtype::f32}.check(), errc::invalid_argument,
         "memory.adopt: count is 0"},
        {detail::adopt_op{.pointer = host, .count = huge, .type = dtype::f32}.check(), errc::size_overflow,
         "memory.adopt: count is 18446744073709551615, too many elements of 4 bytes"},
        {detail::adopt_op{.pointer = reinterpret_cast<void*>(0x1008), .count = 1, .type = dtype::c128}.check(),
         errc::invalid_argument, "memory.adopt: pointer is 0x1008, which is not a multiple of 16, the size of c128"},
        {interop::wait_event<float>{.data = ten}.check(), errc::invalid_argument, "interop.wait_event: event is null"},
        {interop::wait_event<float>{.event = host, .data = {}}.check(), errc::invalid_argument,
         "interop.wait_event: data has 0 elements"},
        {interop::record_event<float>{.data = ten}.check(), errc::invalid_argument,
         "interop.record_event: event is null"},
        {interop::record_event<float>{.event = host, .data = {}}.check(), errc::invalid_argument,
         "interop.record_event: data has 0 elements"},
        {detail::write_op<float>{.dst = ten, .src = host}.check(), errc::invalid_argument,
         "memory.write: the host range has 0 elements"},
        {detail::write_op<float>{.dst = twelve, .src = host, .count = 10}.check(), errc::length_mismatch,
         "memory.write: the host range has 10 elements, dst 12"},
        {detail::read_op<float>{.src = twelve, .dst = host, .count = 10}.check(), errc::length_mismatch,
         "memory.read: the host range has 10 elements, src 12"},
        {detail::collect_op<float>{}.check(), errc::invalid_argument, "memory.download: src has 0 elements"},
    });
    CHECK_FALSE(memory::trim{}.check());
    CHECK_FALSE(detail::adopt_op{.pointer = reinterpret_cast<void*>(0x1010), .count = 1, .type = dtype::c128}.check());
    CHECK_FALSE(interop::wait_event<float>{.event = host, .data = ten}.check());
}

TEST_SUITE_END();

} // namespace test_ops_messages
