#include "host/ops/integer_products.hpp"

#include "host/ops/eigen.hpp"

namespace coaccel::host {

// Integers are unsigned here, because sums of signed integers must not overflow.
void integer_product::run(const std::int8_t* a, const std::int8_t* b, const std::int32_t* c, std::int32_t* d) const
{
    using integer = std::uint32_t;
    dense<integer> left, right;
    with_op(shape.trans_a, converted<integer>(a, shape.a_rows(), shape.a_cols(), lda),
            [&left](const auto& taken) { left = taken; });
    with_op(shape.trans_b, converted<integer>(b, shape.b_rows(), shape.b_cols(), ldb),
            [&right](const auto& taken) { right = taken; });
    const dense<integer> product = left * right;
    const std::uint64_t c_step = ldc == 0 ? shape.m : ldc;
    const std::uint64_t d_step = ldd == 0 ? shape.m : ldd;
    for (std::uint64_t j = 0; j < shape.n; ++j)
        for (std::uint64_t i = 0; i < shape.m; ++i) {
            const integer kept = beta == 0 ? 0 : static_cast<integer>(beta) * static_cast<integer>(c[i + j * c_step]);
            d[i + j * d_step] = static_cast<std::int32_t>(
                static_cast<integer>(alpha) * product(static_cast<Index>(i), static_cast<Index>(j)) + kept);
        }
}

} // namespace coaccel::host
