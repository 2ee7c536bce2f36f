#include "host/ops/batches.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/lu_batched.hpp>

#include <algorithm>

namespace coaccel::host {
namespace {

/// Factorizes the columns from `begin` to `end`, to which the columns before them have been applied. Rows are exchanged
/// in the whole matrix. Returns the number of the first zero pivot.
template <class T>
std::int32_t factorize_columns(matrix_map<T>& a, std::int32_t* pivots, Index begin, Index end)
{
    std::int32_t info = 0;
    const Index n = a.rows();
    for (Index k = begin; k < end; ++k) {
        Index from = k;
        if (pivots) {
            Index below = 0;
            a.col(k).tail(n - k).cwiseAbs().maxCoeff(&below);
            from = k + below;
            pivots[k] = static_cast<std::int32_t>(from + 1);
        }
        if (a(from, k) == T(0)) {
            info = info ? info : static_cast<std::int32_t>(k + 1);
            continue;
        }
        if (from != k)
            a.row(k).swap(a.row(from));
        const Index rest = n - k - 1;
        divide(a.col(k).tail(rest), a(k, k));
        for (Index j = k + 1; j < end; ++j)
            a.col(j).tail(rest) -= a(k, j) * a.col(k).tail(rest);
    }
    return info;
}

/// Without pivots: no rows are exchanged. Returns the number of the first zero pivot.
template <class T>
std::int32_t factorize(matrix_map<T> a, std::int32_t* pivots)
{
    // So few columns fit into the cache, and the others are changed by products of matrices.
    constexpr Index block = 16;
    std::int32_t info = 0;
    const Index n = a.rows();
    for (Index begin = 0; begin < n; begin += block) {
        const Index end = std::min(begin + block, n);
        const std::int32_t zero = factorize_columns<T>(a, pivots, begin, end);
        info = info ? info : zero;
        const Index rest = n - end;
        if (rest == 0)
            break;
        const auto lower = a.block(begin, begin, end - begin, end - begin);
        auto right = a.block(begin, end, end - begin, rest);
        lower.template triangularView<Eigen::UnitLower>().solveInPlace(right);
        a.bottomRightCorner(rest, rest).noalias() -= a.block(end, begin, rest, end - begin) * right;
    }
    return info;
}

template <class T>
std::int32_t first_zero(const matrix_map<const T>& a)
{
    for (Index k = 0; k < a.rows(); ++k)
        if (a(k, k) == T(0))
            return static_cast<std::int32_t>(k + 1);
    return 0;
}

enum class direction : std::uint8_t { forward, backward };

/// Makes the exchanges of a factorization, or undoes them.
template <class Matrix>
void exchange(const std::int32_t* pivots, direction way, Matrix& b)
{
    for (Index i = 0; i < b.rows(); ++i) {
        const Index k = way == direction::forward ? i : b.rows() - 1 - i;
        // They are data of the caller. The limits are those on a GPU.
        const Index with = std::clamp(Index(pivots[k]), Index(1), b.rows()) - 1;
        if (with != k)
            b.row(k).swap(b.row(with));
    }
}

/// Replaces B by the solution. Without pivots: the factorization has no exchanges.
template <class T>
void solve(blas::transpose trans, const matrix_map<const T>& lu, const std::int32_t* pivots, matrix_map<T> b)
{
    using blas::diag;
    using blas::uplo;
    if (trans == blas::transpose::no) {
        if (pivots)
            exchange(pivots, direction::forward, b);
        solve_triangle(uplo::lower, diag::unit, lu, b);
        solve_triangle(uplo::upper, diag::non_unit, lu, b);
        return;
    }
    dense<T> turned;
    with_op(trans, lu, [&](const auto& taken) { turned = taken; });
    solve_triangle(uplo::lower, diag::non_unit, turned, b);
    solve_triangle(uplo::upper, diag::unit, turned, b);
    if (pivots)
        exchange(pivots, direction::backward, b);
}

/// The pivots of matrix i; null if the op has none.
template <class Op>
auto* pivots_of(const Op& op, const bound_op& o, std::uint64_t i)
{
    if constexpr (requires { op.pivots; })
        return o.data(op.pivots) + i * op.n;
    else
        return static_cast<std::int32_t*>(nullptr);
}

struct lu_batched {
    template <class Op>
    static void run(const Op& op, const bound_op& o)
    {
        for (std::uint64_t i = 0; i < op.batch; ++i)
            if constexpr (requires { op.nrhs; })
                solve_one(op, o, i);
            else if constexpr (requires { op.c; })
                invert_one(op, o, i);
            else
                o.data(op.info)[i] = factorize<typename Op::value_type>(matrix_a(op, o, i), pivots_of(op, o, i));
    }

private:
    template <class Op>
    static auto matrix_a(const Op& op, const bound_op& o, std::uint64_t i)
    {
        return matrix(o.data(op.a) + i * op.stride_a, op.n, op.n, op.lda);
    }

    template <class Op>
    static void solve_one(const Op& op, const bound_op& o, std::uint64_t i)
    {
        solve<typename Op::value_type>(op.trans, matrix_a(op, o, i), pivots_of(op, o, i),
                                       matrix(o.data(op.b) + i * op.stride_b, op.n, op.nrhs, op.ldb));
    }

    template <class Op>
    static void invert_one(const Op& op, const bound_op& o, std::uint64_t i)
    {
        using T = typename Op::value_type;
        const auto lu = matrix_a(op, o, i);
        auto c = matrix(o.data(op.c) + i * op.stride_c, op.n, op.n, op.ldc);
        c.setIdentity();
        std::int32_t& info = o.data(op.info)[i];
        info = first_zero<T>(lu);
        if (info == 0)
            solve<T>(blas::transpose::no, lu, pivots_of(op, o, i), c);
    }
};

} // namespace

void add_blas_lu_batched(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() { add_ops<lu_batched>(table, blas::lu_batched_for<T>{}); });
}

} // namespace coaccel::host
