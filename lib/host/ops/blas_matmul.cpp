#include "host/ops/eigen.hpp"
#include "host/ops/integer_products.hpp"
#include "host/ops/libraries.hpp"
#include "host/ops/products.hpp"

#include <coaccel/ops/blas/matmul.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace coaccel::host {
namespace {

/// The end of a product in f32: what is done to each element before it is rounded to its type.
template <class Bias>
struct ending {
    blas::activation what;
    /// Null: there is none.
    const Bias* bias;

    float of(float x, std::uint64_t row) const
    {
        if (bias)
            x += static_cast<float>(bias[row]);
        switch (what) {
        case blas::activation::none: break;
        case blas::activation::relu: return x < 0 ? 0 : x;
        case blas::activation::gelu:
            constexpr float root = 0.797884560802865F;
            return 0.5F * x * (1 + std::tanh(root * (x + 0.044715F * x * x * x)));
        }
        return x;
    }
};

/// A factor in f32: the operand itself, or a converted copy.
template <class T>
class wide_factor {
public:
    wide_factor(const T* data, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld)
        : copy_(converted<float>(data, rows, cols, ld))
    {}

    matrix_map<const float> get() const { return whole(copy_); }

private:
    dense<float> copy_;
};

template <>
class wide_factor<float> {
public:
    wide_factor(const float* data, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld)
        : map_(matrix(data, rows, cols, ld))
    {}

    const matrix_map<const float>& get() const { return map_; }

private:
    matrix_map<const float> map_;
};

/// One product of a batch.
template <class A, class B, class R, class Op, class Ending>
void product(const Op& op, float alpha, const A* a, const B* b, R* c, const Ending& last)
{
    const auto s = op.shape();
    const wide_factor<A> left(a, s.a_rows(), s.a_cols(), op.lda);
    const wide_factor<B> right(b, s.b_rows(), s.b_cols(), op.ldb);
    auto sum = op.beta == 0 ? dense<float>(static_cast<Index>(op.m), static_cast<Index>(op.n))
                            : converted<float>(c, op.m, op.n, op.ldc);
    multiply<float>(s.trans_a, s.trans_b, left.get(), right.get(), whole(sum), alpha, op.beta);
    const std::uint64_t step = op.ldc == 0 ? op.m : op.ldc;
    for (std::uint64_t j = 0; j < op.n; ++j)
        for (std::uint64_t i = 0; i < op.m; ++i)
            c[i + j * step] = R(last.of(sum(static_cast<Index>(i), static_cast<Index>(j)), i));
}

struct matmuls {
    template <class Op>
    static void run(const Op& op, const bound_op& o)
    {
        for (std::uint64_t i = 0; i < op.batch; ++i) {
            const auto* const a = o.data(op.a) + i * op.stride_a;
            const auto* const b = o.data(op.b) + i * op.stride_b;
            auto* const c = o.data(op.c) + i * op.stride_c;
            if constexpr (std::same_as<typename Op::source_type, std::int8_t>)
                integer_product::of(op).run(a, b, c);
            else
                product(op, alpha_of(op, o), a, b, c, ending_of(op, o));
        }
    }

private:
    template <class Op>
    static float alpha_of(const Op& op, const bound_op& o)
    {
        if constexpr (requires { op.scale_a; })
            return op.alpha * *o.data(op.scale_a) * *o.data(op.scale_b);
        else
            return op.alpha;
    }

    template <class Op>
    static auto ending_of(const Op& op, const bound_op& o)
    {
        if constexpr (requires { op.bias; })
            return ending<std::remove_cvref_t<decltype(*o.data(op.bias))>>{op.activation, o.data(op.bias)};
        else
            return ending<float>{op.activation, nullptr};
    }
};

} // namespace

void add_blas_matmul(op_table& table)
{
    blas::detail::for_each_matmul_element([&table]<class T>() { add_ops<matmuls>(table, blas::matmul_for<T>{}); });
}

} // namespace coaccel::host
