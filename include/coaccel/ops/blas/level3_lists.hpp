#ifndef COACCEL_OPS_BLAS_LEVEL3_LISTS_HPP
#define COACCEL_OPS_BLAS_LEVEL3_LISTS_HPP

#include <coaccel/ops/blas/level3.hpp>

#include <array>
#include <cstddef>

// Products whose matrices are in any number of buffers.
namespace coaccel::blas {

/// The most products of gemm_batched and gemm_grouped.
inline constexpr std::size_t most_products = 32;

namespace detail {

/// Operand i of a list, which has `available` elements.
struct listed_matrix {
    std::string_view field, ld_field;
    std::size_t i;
    bool given;
    std::uint64_t available;

    error_code check(std::string_view op, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld) const noexcept
    {
        if (!given)
            return op_error(errc::invalid_argument, op, {field, "[", i, "] has no buffer"});
        if (ld != 0 && ld < rows)
            return op_error(errc::leading_dimension, op,
                            {ld_field, " of product ", i, " is ", ld, ", ", field, "[", i, "] has ", rows, " rows"});
        const auto needed = coaccel::detail::matrix_extent(rows, cols, effective_ld(ld, rows));
        if (!needed)
            return op_error(errc::size_overflow, op,
                            {"the number of elements that ", field, "[", i, "] needs overflows 64 bits"});
        if (*needed <= available)
            return {};
        return op_error(errc::out_of_bounds, op, {field, "[", i, "] has ", available, " elements, needs ", *needed});
    }
};

/// Checks the operands of product i. Preconditions: the shape is valid.
template <class Op>
error_code check_listed(const Op& o, std::size_t i, const gemm_shape& s, std::uint64_t lda, std::uint64_t ldb,
                        std::uint64_t ldc) noexcept
{
    const listed_matrix a{"a", "lda", i, o.a[i].has_value(), o.a[i].size()};
    const listed_matrix b{"b", "ldb", i, o.b[i].has_value(), o.b[i].size()};
    const listed_matrix c{"c", "ldc", i, o.c[i].has_value(), o.c[i].size()};
    return first_error({a.check(Op::name, s.a_rows(), s.a_cols(), lda), b.check(Op::name, s.b_rows(), s.b_cols(), ldb),
                        c.check(Op::name, s.m, s.n, ldc)});
}

/// Checks the number of products, and that there are no operands behind them.
template <class Op>
error_code check_count(const Op& o) noexcept
{
    if (o.count == 0)
        return is_zero(Op::name, "count");
    if (o.count > most_products)
        return op_error(errc::invalid_argument, Op::name, {"count is ", o.count, ", must be at most ", most_products});
    for (std::size_t i = o.count; i < most_products; ++i)
        if (o.a[i].has_value() || o.b[i].has_value() || o.c[i].has_value())
            return op_error(errc::invalid_argument, Op::name, {"product ", i, " has a buffer, but count is ", o.count});
    return {};
}

} // namespace detail

/// C[i] = alpha * op(A[i]) * op(B[i]) + beta * C[i] for `count` products of the same sizes, as gemm. Each matrix is an
/// operand of its own, in any buffer.
template <gemm_element T>
struct gemm_batched {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    std::array<optional_in<T>, most_products> a{};    ///< The first factors: m by k, or k by m when transposed.
    std::array<optional_in<T>, most_products> b{};    ///< The second factors: k by n, or n by k when transposed.
    std::array<optional_inout<T>, most_products> c{}; ///< The results: m by n. Not read when beta is zero.
    std::uint64_t count = 0;                          ///< The number of products.
    std::uint64_t m = 0;                              ///< Rows of op(A) and C.
    std::uint64_t n = 0;                              ///< Columns of op(B) and C.
    std::uint64_t k = 0;                              ///< Columns of op(A) and rows of op(B).
    scalar<T> alpha = 1;                              ///< The factor of the products.
    scalar<T> beta = 0;                               ///< The factor of the previous C.
    transpose trans_a = transpose::no;                ///< Whether the A are transposed.
    transpose trans_b = transpose::no;                ///< Whether the B are transposed.
    std::uint64_t lda = 0;                            ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;                            ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;                            ///< The distance between columns of C; zero: packed.
    blas::math math = blas::math::standard;           ///< The precision in which products are computed.

    /// Adds a product. `check` refuses an op with more than most_products.
    gemm_batched& add(const in<T>& first, const in<T>& second, const inout<T>& result) noexcept
    {
        if (count < most_products) {
            a[count].raw = first.raw;
            b[count].raw = second.raw;
            c[count].raw = result.raw;
        }
        ++count;
        return *this;
    }

    constexpr detail::gemm_shape shape() const noexcept
    {
        return {m, n, k, trans_a, trans_b};
    } ///< The sides of the matrices.

    error_code check() const noexcept
    {
        if (auto ec = detail::first_error(
                {detail::check_count(*this), shape().check(name), detail::check_value(name, "math", math)}))
            return ec;
        for (std::size_t i = 0; i < count; ++i)
            if (auto ec = detail::check_listed(*this, i, shape(), lda, ldb, ldc))
                return ec;
        return {};
    }

    bool overwrites() const noexcept
    {
        if (beta != scalar<T>(0) || (ldc != 0 && ldc != m))
            return false;
        for (std::size_t i = 0; i < count; ++i)
            if (c[i].size() != coaccel::detail::times(m, n))
                return false;
        return true;
    }

    COACCEL_PURE_OP(blas, gemm_batched, void, a, b, c, count, m, n, k, alpha, beta, trans_a, trans_b, lda, ldb, ldc,
                    math)
};

/// `count` products as gemm, each with its own sizes, factors and matrices.
template <gemm_element T>
struct gemm_grouped {
    using value_type = T;

    std::array<optional_in<T>, most_products> a{};    ///< The first factors.
    std::array<optional_in<T>, most_products> b{};    ///< The second factors.
    std::array<optional_inout<T>, most_products> c{}; ///< The results.
    std::uint64_t count = 0;                          ///< The number of products.
    std::array<std::uint64_t, most_products> m{};     ///< Rows of op(A) and C, for each product.
    std::array<std::uint64_t, most_products> n{};     ///< Columns of op(B) and C.
    std::array<std::uint64_t, most_products> k{};     ///< Columns of op(A) and rows of op(B).
    std::array<scalar<T>, most_products> alpha{};     ///< The factors of the products.
    std::array<scalar<T>, most_products> beta{};      ///< The factors of the previous C.
    std::array<transpose, most_products> trans_a{};   ///< Whether A is transposed.
    std::array<transpose, most_products> trans_b{};   ///< Whether B is transposed.
    std::array<std::uint64_t, most_products> lda{};   ///< The distance between columns of A; zero: packed.
    std::array<std::uint64_t, most_products> ldb{};   ///< The distance between columns of B; zero: packed.
    std::array<std::uint64_t, most_products> ldc{};   ///< The distance between columns of C; zero: packed.
    blas::math math = blas::math::standard;           ///< The precision in which products are computed.

    /// Adds a product, whose `math` is not used. `check` refuses an op with more than most_products.
    gemm_grouped& add(const gemm<T>& product) noexcept
    {
        if (const std::size_t i = count; i < most_products) {
            a[i].raw = product.a.raw;
            b[i].raw = product.b.raw;
            c[i].raw = product.c.raw;
            m[i] = product.m;
            n[i] = product.n;
            k[i] = product.k;
            alpha[i] = product.alpha;
            beta[i] = product.beta;
            trans_a[i] = product.trans_a;
            trans_b[i] = product.trans_b;
            lda[i] = product.lda;
            ldb[i] = product.ldb;
            ldc[i] = product.ldc;
        }
        ++count;
        return *this;
    }

    /// Product i without its operands. Preconditions: i < count.
    gemm<T> product(std::size_t i) const noexcept
    {
        return {.a = {},
                .b = {},
                .c = {},
                .m = m[i],
                .n = n[i],
                .k = k[i],
                .alpha = alpha[i],
                .beta = beta[i],
                .trans_a = trans_a[i],
                .trans_b = trans_b[i],
                .lda = lda[i],
                .ldb = ldb[i],
                .ldc = ldc[i],
                .math = math};
    }

    /// The sides of the matrices of a product. Preconditions: i < count.
    constexpr detail::gemm_shape shape(std::size_t i) const noexcept
    {
        return {m[i], n[i], k[i], trans_a[i], trans_b[i]};
    }

    error_code check() const noexcept
    {
        if (auto ec = detail::first_error({detail::check_count(*this), detail::check_value(name, "math", math)}))
            return ec;
        for (std::size_t i = 0; i < count; ++i) {
            const auto s = shape(i);
            if (const auto ec = s.check(name))
                return detail::op_error(errc_of(ec), name,
                                        {"the sizes of product ", i, " are invalid: m is ", s.m, ", n is ", s.n,
                                         ", k is ", s.k, ", trans_a is ", static_cast<unsigned>(s.trans_a),
                                         ", trans_b is ", static_cast<unsigned>(s.trans_b)});
            if (auto ec = detail::check_listed(*this, i, s, lda[i], ldb[i], ldc[i]))
                return ec;
        }
        return {};
    }

    bool overwrites() const noexcept
    {
        for (std::size_t i = 0; i < count; ++i)
            if (beta[i] != scalar<T>(0) || (ldc[i] != 0 && ldc[i] != m[i]) ||
                c[i].size() != coaccel::detail::times(m[i], n[i]))
                return false;
        return true;
    }

    COACCEL_PURE_OP(blas, gemm_grouped, void, a, b, c, count, m, n, k, alpha, beta, trans_a, trans_b, lda, ldb, ldc,
                    math)
};

/// The ops of this header for one element type.
template <gemm_element T>
using level3_lists_for = type_list<gemm_batched<T>, gemm_grouped<T>>;

} // namespace coaccel::blas

#endif
