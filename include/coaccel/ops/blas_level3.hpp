#ifndef COACCEL_OPS_BLAS_LEVEL3_HPP
#define COACCEL_OPS_BLAS_LEVEL3_HPP

#include <coaccel/ops/blas_level2.hpp>

namespace coaccel::blas {
namespace detail {

struct gemm_shape {
    std::uint64_t m, n, k;
    transpose trans_a, trans_b;

    constexpr std::uint64_t a_rows() const noexcept { return trans_a == transpose::no ? m : k; }
    constexpr std::uint64_t a_cols() const noexcept { return trans_a == transpose::no ? k : m; }
    constexpr std::uint64_t b_rows() const noexcept { return trans_b == transpose::no ? k : n; }
    constexpr std::uint64_t b_cols() const noexcept { return trans_b == transpose::no ? n : k; }

    error_code check() const noexcept
    {
        if (m == 0 || n == 0 || k == 0 || !valid(trans_a) || !valid(trans_b))
            return errc::invalid_argument;
        using coaccel::detail::times;
        return times(times(m, n), k) ? error_code{} : make_error_code(errc::size_overflow);
    }
};

/// The elements `batch` matrices reach over when each starts `stride` after the one before.
inline error_code check_batch(coaccel::detail::extent one, std::uint64_t stride, std::uint64_t batch,
                              std::uint64_t available) noexcept
{
    if (batch == 0)
        return errc::invalid_argument;
    using namespace coaccel::detail;
    return require(plus(times(batch - 1, stride), one), available);
}

} // namespace detail

/// C = alpha * op(A) * op(B) + beta * C, with op(A) m by k, op(B) k by n and C m by n.
///
/// Column-major. A leading dimension left at zero means the matrix is packed. With beta zero C is not
/// read, with alpha zero A and B are not. 16-bit elements accumulate in f32.
template <gemm_element T>
struct gemm {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.gemm";
    static constexpr library lib = library::blas;

    in<T> a;
    in<T> b;
    inout<T> c;
    std::uint64_t m = 0;
    std::uint64_t n = 0;
    std::uint64_t k = 0;
    scalar<T> alpha = 1;
    scalar<T> beta = 0;
    transpose trans_a = transpose::no;
    transpose trans_b = transpose::no;
    std::uint64_t lda = 0;
    std::uint64_t ldb = 0;
    std::uint64_t ldc = 0;
    blas::math math = blas::math::standard;

    constexpr detail::gemm_shape shape() const noexcept { return {m, n, k, trans_a, trans_b}; }

    error_code check() const noexcept
    {
        const auto s = shape();
        if (auto ec = s.check())
            return ec;
        if (!valid(math))
            return errc::invalid_argument;
        if (auto ec = detail::check_matrix(s.a_rows(), s.a_cols(), lda, a.size()))
            return ec;
        if (auto ec = detail::check_matrix(s.b_rows(), s.b_cols(), ldb, b.size()))
            return ec;
        return detail::check_matrix(m, n, ldc, c.size());
    }

    BOOST_DESCRIBE_CLASS(gemm, (), (a, b, c, m, n, k, alpha, beta, trans_a, trans_b, lda, ldb, ldc, math), (), ())
};

/// `batch` products like gemm; matrix i of each operand starts i * stride elements after its first.
///
/// The strides of A and B may be zero (one matrix for all products); C's matrices may not overlap.
template <gemm_element T>
struct gemm_strided_batched {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.gemm_strided_batched";
    static constexpr library lib = library::blas;

    in<T> a;
    in<T> b;
    inout<T> c;
    std::uint64_t m = 0;
    std::uint64_t n = 0;
    std::uint64_t k = 0;
    std::uint64_t batch = 0;
    std::uint64_t stride_a = 0;
    std::uint64_t stride_b = 0;
    std::uint64_t stride_c = 0;
    scalar<T> alpha = 1;
    scalar<T> beta = 0;
    transpose trans_a = transpose::no;
    transpose trans_b = transpose::no;
    std::uint64_t lda = 0;
    std::uint64_t ldb = 0;
    std::uint64_t ldc = 0;
    blas::math math = blas::math::standard;

    constexpr detail::gemm_shape shape() const noexcept { return {m, n, k, trans_a, trans_b}; }

    error_code check() const noexcept
    {
        using coaccel::detail::matrix_extent;
        using detail::effective_ld;
        const auto s = shape();
        if (auto ec = s.check())
            return ec;
        if (!valid(math))
            return errc::invalid_argument;
        if ((lda != 0 && lda < s.a_rows()) || (ldb != 0 && ldb < s.b_rows()) || (ldc != 0 && ldc < m))
            return errc::leading_dimension;
        const auto a_one = matrix_extent(s.a_rows(), s.a_cols(), effective_ld(lda, s.a_rows()));
        const auto b_one = matrix_extent(s.b_rows(), s.b_cols(), effective_ld(ldb, s.b_rows()));
        const auto c_one = matrix_extent(m, n, effective_ld(ldc, m));
        if (auto ec = detail::check_batch(a_one, stride_a, batch, a.size()))
            return ec;
        if (auto ec = detail::check_batch(b_one, stride_b, batch, b.size()))
            return ec;
        if (batch > 1 && c_one && stride_c < *c_one)
            return errc::leading_dimension;
        return detail::check_batch(c_one, stride_c, batch, c.size());
    }

    BOOST_DESCRIBE_CLASS(gemm_strided_batched, (),
                         (a, b, c, m, n, k, batch, stride_a, stride_b, stride_c, alpha, beta, trans_a, trans_b, lda,
                          ldb, ldc, math),
                         (), ())
};

} // namespace coaccel::blas

#endif
