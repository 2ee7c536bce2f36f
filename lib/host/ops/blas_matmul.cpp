#include "host/ops/eigen.hpp"
#include "host/ops/integer_products.hpp"
#include "host/ops/libraries.hpp"
#include "host/ops/products.hpp"

#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas/matmul.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace coaccel::host {
namespace {

float activated(blas::activation what, float x)
{
    switch (what) {
    case blas::activation::none: break;
    case blas::activation::relu: return x < 0 ? 0 : x;
    case blas::activation::gelu:
        constexpr float root = 0.797884560802865F;
        return 0.5F * x * (1 + std::tanh(root * (x + 0.044715F * x * x * x)));
    }
    return x;
}

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

/// Factors of the rows or columns of a product: all the same, or one for each.
struct scales {
    const float* of;
    bool several;

    float at(std::uint64_t i) const { return of ? of[several ? i : 0] : 1; }
};

/// The products of one op, as BLAS stores them.
template <class Op>
class matmul_run {
public:
    matmul_run(const Op& op, const bound_op& o) : op_(op), o_(o), as_(blas::detail::stored_product::of(op)) {}

    void run()
    {
        for (std::uint64_t i = 0; i < op_.batch; ++i) {
            // The types of the factors may differ.
            if (as_.b_first)
                product(i, o_.data(op_.b), o_.data(op_.a));
            else
                product(i, o_.data(op_.a), o_.data(op_.b));
        }
        if (auto* const to = o_.data(op_.amax_d))
            *to = most_;
    }

private:
    template <class First, class Second>
    void product(std::uint64_t i, const First* first, const Second* second)
    {
        first += i * as_.stride_first;
        second += i * as_.stride_second;
        auto* const d = o_.data(op_.d) + i * op_.stride_d;
        if (const auto* c = o_.data(op_.c))
            add(first, second, c + i * op_.stride_c, op_.ldc, d);
        else if constexpr (std::same_as<typename Op::addend_type, typename Op::value_type>)
            add(first, second, d, op_.ldd, d);
        else
            // It is not read, because beta is zero.
            add(first, second, static_cast<const typename Op::addend_type*>(nullptr), 0, d);
    }

    template <class First, class Second, class C, class D>
    void add(const First* first, const Second* second, const C* c, std::uint64_t ldc, D* d)
    {
        const auto& s = as_.shape;
        if constexpr (std::same_as<First, std::int8_t>) {
            integer_product{s, as_.ld_first, as_.ld_second, ldc, op_.ldd, op_.alpha, op_.beta}.run(first, second, c, d);
        } else {
            const wide_factor<First> left(first, s.a_rows(), s.a_cols(), as_.ld_first);
            const wide_factor<Second> right(second, s.b_rows(), s.b_cols(), as_.ld_second);
            dense<float> sum(static_cast<Index>(s.m), static_cast<Index>(s.n));
            multiply<float>(s.trans_a, s.trans_b, left.get(), right.get(), whole(sum), op_.alpha, 0);
            finish(sum, c, ldc, d);
        }
    }

    /// What is done in f32 to each element of a product before it is rounded to its type.
    template <class C, class D>
    void finish(const dense<float>& sum, const C* c, std::uint64_t ldc, D* d)
    {
        const scales a{o_.data(op_.scale_a), op_.scales_rows()}, b{o_.data(op_.scale_b), op_.scales_rows()};
        const scales& of_rows = as_.b_first ? b : a;
        const scales& of_columns = as_.b_first ? a : b;
        const float* const scale_d = o_.data(op_.scale_d);
        const auto* const bias = o_.data(op_.bias);
        const auto& s = as_.shape;
        const std::uint64_t c_step = ldc == 0 ? s.m : ldc;
        const std::uint64_t d_step = op_.ldd == 0 ? s.m : op_.ldd;
        for (std::uint64_t j = 0; j < s.n; ++j)
            for (std::uint64_t i = 0; i < s.m; ++i) {
                float x = sum(static_cast<Index>(i), static_cast<Index>(j)) * of_rows.at(i) * of_columns.at(j);
                if (op_.beta != 0)
                    x += op_.beta * static_cast<float>(c[i + j * c_step]);
                if (bias)
                    x += static_cast<float>(bias[i]);
                x = activated(op_.activation, x);
                most_ = std::max(most_, std::abs(x));
                d[i + j * d_step] = D(scale_d ? x * *scale_d : x);
            }
    }

    const Op& op_;
    const bound_op& o_;
    const blas::detail::stored_product as_;
    float most_ = 0;
};

struct matmuls {
    template <class Op>
    static void run(const Op& op, const bound_op& o)
    {
        matmul_run<Op>(op, o).run();
    }

    template <class Op>
    static tuning run(const tune<Op>&, const bound_op&)
    {
        return {};
    }
};

template <op... Ops>
void add_with_tuning(op_table& table, type_list<Ops...>)
{
    (add_ops<matmuls>(table, type_list<Ops, tune<Ops>>{}), ...);
}

} // namespace

void add_blas_matmul(op_table& table)
{
    blas::detail::for_each_matmul_element([&table]<class T>() { add_with_tuning(table, blas::matmul_for<T>{}); });
}

} // namespace coaccel::host
