#ifndef COACCEL_OPS_BLAS_LEVEL2_BATCHED_HPP
#define COACCEL_OPS_BLAS_LEVEL2_BATCHED_HPP

#include <coaccel/ops/blas/level2.hpp>

namespace coaccel::blas {
namespace detail {

/// Whether `batch` vectors of n elements, each of which starts `stride` elements after the previous one, have no
/// element in common: they follow each other or interleave.
constexpr bool vectors_are_apart(std::uint64_t n, std::int64_t inc, std::uint64_t stride, std::uint64_t batch) noexcept
{
    using namespace coaccel::detail;
    if (batch == 1)
        return true;
    const auto one = vector_extent(n, inc);
    if (one && stride >= *one)
        return true;
    const auto starts = times(batch - 1, stride);
    return stride != 0 && starts && step_of(inc) > *starts;
}

} // namespace detail

/// `batch` products like gemv; matrix or vector i of each operand starts i * stride elements after the first one.
///
/// The strides of A and x may be zero (one operand for all products); the vectors of y must not have elements in
/// common. 16-bit elements accumulate in f32.
template <gemm_element T>
struct gemv_strided_batched {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                    ///< The matrices: m by n.
    in<T> x;                    ///< The vectors to multiply: n elements, or m when A is transposed.
    inout<T> y;                 ///< The results: m elements, or n when A is transposed. Not read when beta is zero.
    std::uint64_t m = 0;        ///< Rows of A.
    std::uint64_t n = 0;        ///< Columns of A.
    std::uint64_t batch = 0;    ///< The number of products.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; zero: one matrix for all products.
    std::uint64_t stride_x = 0; ///< The distance between vectors x; zero: one vector for all products.
    std::uint64_t stride_y = 0; ///< The distance between vectors y.
    scalar<T> alpha = 1;        ///< The factor of the products.
    scalar<T> beta = 0;         ///< The factor of the previous y.
    transpose trans = transpose::no; ///< Whether A is transposed.
    std::uint64_t lda = 0;           ///< The distance between columns of A; zero: m, packed.
    std::int64_t incx = 1;           ///< The distance between elements of x; not zero.
    std::int64_t incy = 1;           ///< The distance between elements of y; not zero.

    constexpr std::uint64_t x_size() const noexcept { return trans == transpose::no ? n : m; } ///< Elements of one x.
    constexpr std::uint64_t y_size() const noexcept { return trans == transpose::no ? m : n; } ///< Elements of one y.

    error_code check() const noexcept
    {
        using namespace coaccel::detail;
        if (auto ec = detail::first_error({
                detail::check_value(name, "trans", trans),
                detail::check_sides(name, m, n),
                batch == 0 ? detail::is_zero(name, "batch") : error_code{},
                incx == 0 ? detail::is_zero(name, "incx") : error_code{},
                incy == 0 ? detail::is_zero(name, "incy") : error_code{},
                detail::check_ld(name, detail::a_names, m, lda),
            }))
            return ec;
        const auto batched = [this](std::string_view field, extent one, std::uint64_t stride, std::uint64_t size) {
            return require(name, field, plus(times(batch - 1, stride), one), size);
        };
        if (auto ec = detail::first_error({
                batched("a", matrix_extent(m, n, detail::effective_ld(lda, m)), stride_a, a.size()),
                batched("x", vector_extent(x_size(), incx), stride_x, x.size()),
                batched("y", vector_extent(y_size(), incy), stride_y, y.size()),
            }))
            return ec;
        if (detail::vectors_are_apart(y_size(), incy, stride_y, batch))
            return {};
        return detail::op_error(errc::invalid_argument, name,
                                {"stride_y is ", stride_y, ": the vectors of y have elements in common"});
    }

    bool overwrites() const noexcept
    {
        using coaccel::detail::times;
        return beta == scalar<T>(0) && coaccel::detail::step_of(incy) == 1 && (batch == 1 || stride_y == y_size()) &&
               y.size() == times(batch, y_size());
    }

    COACCEL_PURE_OP(blas, gemv_strided_batched, void, a, x, y, m, n, batch, stride_a, stride_x, stride_y, alpha, beta,
                    trans, lda, incx, incy)
};

} // namespace coaccel::blas

#endif
