#ifndef COACCEL_OPS_BLAS_BATCHES_HPP
#define COACCEL_OPS_BLAS_BATCHES_HPP

#include <coaccel/ops/blas/level2.hpp>

#include <limits>

// Checks of ops on batches of matrices: matrix i of an operand starts i * stride elements after the first one.
namespace coaccel::blas::detail {

/// The names of a batch of matrices, its leading dimension and its stride in error messages.
struct batch_names {
    matrix_names one;
    std::string_view stride;
};

inline constexpr batch_names a_batch{a_names, "stride_a"};
inline constexpr batch_names b_batch{b_names, "stride_b"};
inline constexpr batch_names c_batch{c_names, "stride_c"};

/// Checks an operand of `batch` matrices, each of which starts `stride` elements after the previous one.
inline error_code check_batch(std::string_view op, std::string_view field, coaccel::detail::extent one,
                              std::uint64_t stride, std::uint64_t batch, std::uint64_t available) noexcept
{
    using namespace coaccel::detail;
    return require(op, field, plus(times(batch - 1, stride), one), available);
}

/// An operand of `batch` matrices.
struct matrix_batch {
    std::uint64_t rows, cols, ld, stride, batch, available;

    constexpr coaccel::detail::extent one() const noexcept
    {
        return coaccel::detail::matrix_extent(rows, cols, effective_ld(ld, rows));
    }

    /// Whether they fill the operand without gaps.
    constexpr bool fills() const noexcept
    {
        const auto packed = coaccel::detail::times(rows, cols);
        return effective_ld(ld, rows) == rows && (batch == 1 || stride == packed) &&
               available == coaccel::detail::times(packed, batch);
    }

    /// For an operand that is only read: the matrices may be one, or overlap.
    error_code check(std::string_view op, const batch_names& names) const noexcept
    {
        if (auto ec = check_ld(op, names.one, rows, ld))
            return ec;
        return check_batch(op, names.one.matrix, one(), stride, batch, available);
    }

    /// For an operand that is written: the matrices must not overlap.
    error_code check_apart(std::string_view op, const batch_names& names) const noexcept
    {
        if (auto ec = check_ld(op, names.one, rows, ld))
            return ec;
        const auto extent = one();
        if (batch > 1 && extent && stride < *extent)
            return op_error(
                errc::leading_dimension, op,
                {names.stride, " is ", stride, ", one matrix of ", names.one.matrix, " has ", *extent, " elements"});
        return check_batch(op, names.one.matrix, extent, stride, batch, available);
    }
};

/// cuBLAS has the factorizations with sizes of 32 bits only.
inline error_code check_int(std::string_view op, std::string_view field, std::uint64_t value) noexcept
{
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
    if (value <= most)
        return {};
    return op_error(errc::invalid_argument, op, {field, " is ", value, ", must be at most ", most});
}

/// A size of a factorization.
inline error_code check_size(std::string_view op, std::string_view field, std::uint64_t value) noexcept
{
    return value == 0 ? is_zero(op, field) : check_int(op, field, value);
}

/// Checks an operand with `each` elements for each matrix, one after the other.
inline error_code check_packed(std::string_view op, std::string_view field, std::uint64_t each, std::uint64_t batch,
                               std::uint64_t available) noexcept
{
    const auto wanted = coaccel::detail::times(each, batch);
    if (!wanted || *wanted == available)
        return coaccel::detail::require(op, field, wanted, available);
    return op_error(errc::length_mismatch, op, {field, " has ", available, " elements, must have ", *wanted});
}

/// An operand of a factorization. cuBLAS computes the places of the elements of one matrix with 32 bits.
inline error_code check_int_span(std::string_view op, const matrix_names& names, const matrix_batch& m) noexcept
{
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
    // The leading dimension of a single column has no meaning.
    const std::uint64_t ld = m.cols == 1 ? m.rows : effective_ld(m.ld, m.rows);
    const auto span = coaccel::detail::times(ld, m.cols);
    if (!span)
        return coaccel::detail::require(op, names.matrix, span, m.available);
    if (*span <= most)
        return {};
    return op_error(errc::invalid_argument, op,
                    {"one matrix of ", names.matrix, " spans ", *span, " elements with ", names.ld, " ", ld,
                     ", must be at most ", most});
}

} // namespace coaccel::blas::detail

#endif
