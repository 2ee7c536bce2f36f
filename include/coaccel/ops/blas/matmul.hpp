#ifndef COACCEL_OPS_BLAS_MATMUL_HPP
#define COACCEL_OPS_BLAS_MATMUL_HPP

#include <coaccel/ops/blas/level3.hpp>

#include <cstddef>
#include <utility>

// Products with a bias and an activation in one pass, and products of fp8, which a GPU computes with cuBLASLt.
namespace coaccel::blas {

/// The 8-bit floating-point types.
template <class T>
concept float8_element = std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2>;

/// Element types of the first factor of matmul whose products are computed in f32.
template <class T>
concept matmul_real = std::same_as<T, float> || std::same_as<T, half> || std::same_as<T, bfloat16>;

/// Element types of the first factor of matmul.
template <class T>
concept matmul_element = matmul_real<T> || float8_element<T> || std::same_as<T, std::int8_t>;

/// Element types of the second factor of matmul: that of the first one. Factors of fp8 may have different types, and
/// must not both be e5m2.
template <class B, class A>
concept matmul_second = (std::same_as<A, B> && !std::same_as<A, float8_e5m2>) ||
                        (float8_element<A> && float8_element<B> && !std::same_as<A, B>);

namespace detail {

template <class D, class A, class B>
consteval bool is_matmul_result() noexcept
{
    if constexpr (std::same_as<A, std::int8_t>)
        return std::same_as<D, std::int32_t>;
    else if constexpr (std::same_as<D, float8_e5m2>)
        return float8_element<A> && !std::same_as<A, B>;
    else if constexpr (float8_element<A>)
        return matmul_real<D> || std::same_as<D, float8_e4m3>;
    else
        return std::same_as<D, A> || std::same_as<D, float>;
}

} // namespace detail

/// Element types of the result of matmul, for factors of type A and B:
/// - f32, f16, bf16: that type, or f32
/// - i8: i32
/// - fp8: f32, f16, bf16, e4m3; also e5m2 if A and B differ.
template <class D, class A, class B>
concept matmul_result = detail::is_matmul_result<D, A, B>();

namespace detail {

template <class A>
using default_result =
    std::conditional_t<float8_element<A>, bfloat16, std::conditional_t<std::same_as<A, std::int8_t>, std::int32_t, A>>;

template <class A>
using default_second = std::conditional_t<std::same_as<A, float8_e5m2>, float8_e4m3, A>;

/// A product as BLAS stores its matrices: column by column. In row-major order it is the transposed product, whose
/// first factor is B.
struct stored_product {
    gemm_shape shape;
    bool b_first;
    std::uint64_t ld_first, ld_second, stride_first, stride_second;

    template <class Op>
    static constexpr stored_product of(const Op& o) noexcept
    {
        if (o.order == order::row_major)
            return {{o.n, o.m, o.k, o.trans_b, o.trans_a}, true, o.ldb, o.lda, o.stride_b, o.stride_a};
        return {{o.m, o.n, o.k, o.trans_a, o.trans_b}, false, o.lda, o.ldb, o.stride_a, o.stride_b};
    }
};

/// What cuBLASLt needs of products of 8-bit elements: the first factor is transposed and the second one is not; sizes,
/// strides and the places of operands in their buffers are multiples of `unit` elements.
struct byte_rule {
    std::string_view op;
    std::uint64_t unit;
    std::string_view type;

    error_code check(std::string_view field, std::uint64_t value) const noexcept
    {
        if (value % unit == 0)
            return {};
        return op_error(errc::invalid_argument, op,
                        {field, " is ", value, ", must be a multiple of ", unit, " with ", type});
    }

    error_code check_ld(const matrix_names& names, std::uint64_t rows, std::uint64_t cols,
                        std::uint64_t ld) const noexcept
    {
        const std::uint64_t step = cols == 1 ? rows : effective_ld(ld, rows);
        if (step % unit == 0)
            return {};
        return op_error(errc::leading_dimension, op,
                        {names.ld, " is ", step, ", must be a multiple of ", unit, " with ", type});
    }

    error_code check_place(std::string_view field, const any_ref& at) const noexcept
    {
        if (at.is_none() || at.offset % unit == 0)
            return {};
        return op_error(errc::invalid_argument, op,
                        {field, " starts at element ", at.offset, ", must be a multiple of ", unit, " with ", type});
    }

    error_code check_transposes(const stored_product& p) const noexcept
    {
        const auto wrong = [&](std::string_view factor, std::string_view field, transpose is, std::string_view must) {
            const std::string_view value = is == transpose::no ? "no" : is == transpose::yes ? "yes" : "conjugate";
            return op_error(errc::invalid_argument, op,
                            {field, " is ", value, ", ", factor, must, "be transposed with ", type,
                             p.b_first ? " in row-major order" : ""});
        };
        if (p.shape.trans_a == transpose::no)
            return p.b_first ? wrong("B", "trans_b", transpose::no, " must ")
                             : wrong("A", "trans_a", transpose::no, " must ");
        if (p.shape.trans_b == transpose::no)
            return {};
        return p.b_first ? wrong("A", "trans_a", p.shape.trans_b, " must not ")
                         : wrong("B", "trans_b", p.shape.trans_b, " must not ");
    }
};

/// The names of a matrix that is stored row by row.
constexpr matrix_names by_rows(matrix_names names) noexcept
{
    names.lines = "columns";
    return names;
}

inline constexpr matrix_names d_names{"d", "ldd"};
inline constexpr batch_names d_batch{d_names, "stride_d"};

template <class Op>
struct matmul_checks {
    const Op& o;
    const stored_product p = stored_product::of(o);

    constexpr batch_names names(batch_names of) const noexcept
    {
        return p.b_first ? batch_names{by_rows(of.one), of.stride} : of;
    }

    error_code operands() const noexcept
    {
        if (o.batch == 0)
            return is_zero(Op::name, "batch");
        const auto& s = p.shape;
        const auto first = names(p.b_first ? b_batch : a_batch), second = names(p.b_first ? a_batch : b_batch);
        const std::uint64_t first_size = p.b_first ? o.b.size() : o.a.size();
        const std::uint64_t second_size = p.b_first ? o.a.size() : o.b.size();
        const auto wrong_factors =
            std::pair(matrix_batch{s.a_rows(), s.a_cols(), p.ld_first, p.stride_first, o.batch, first_size}.check(
                          Op::name, first),
                      matrix_batch{s.b_rows(), s.b_cols(), p.ld_second, p.stride_second, o.batch, second_size}.check(
                          Op::name, second));
        return first_error(
            {p.b_first ? wrong_factors.second : wrong_factors.first,
             p.b_first ? wrong_factors.first : wrong_factors.second,
             matrix_batch{s.m, s.n, o.ldd, o.stride_d, o.batch, o.d.size()}.check_apart(Op::name, names(d_batch)),
             o.c.has_value()
                 ? matrix_batch{s.m, s.n, o.ldc, o.stride_c, o.batch, o.c.size()}.check(Op::name, names(c_batch))
                 : error_code{},
             o.bias.has_value() ? coaccel::detail::require(Op::name, "bias", s.m, o.bias.size()) : error_code{}});
    }

    /// Operands that only some types of factors and results have.
    error_code extras() const noexcept
    {
        using A = typename Op::source_type;
        using D = typename Op::value_type;
        const auto only = [](bool given, std::string_view field, std::string_view with) {
            return given ? op_error(errc::invalid_argument, Op::name, {field, " is only for ", with}) : error_code{};
        };
        if constexpr (!float8_element<A>)
            if (auto ec = first_error({only(o.scale_a.has_value(), "scale_a", "factors of fp8"),
                                       only(o.scale_b.has_value(), "scale_b", "factors of fp8")}))
                return ec;
        if constexpr (!float8_element<D>)
            if (auto ec = first_error({only(o.scale_d.has_value(), "scale_d", "results of fp8"),
                                       only(o.amax_d.has_value(), "amax_d", "results of fp8")}))
                return ec;
        if constexpr (std::same_as<A, std::int8_t>) {
            if (o.activation != activation::none)
                return op_error(
                    errc::invalid_argument, Op::name,
                    {"activation is ", o.activation == activation::relu ? "relu" : "gelu", ", must be none with i8"});
            return only(o.bias.has_value(), "bias", "real numbers");
        } else if constexpr (float8_element<D>) {
            if (o.beta != 0 && !o.c.has_value())
                return op_error(
                    errc::invalid_argument, Op::name,
                    {"c has no buffer, which a result of fp8 needs unless beta is zero and no factor is a parameter"});
        }
        return {};
    }

    /// One scale for a factor, or one for each row of A and each column of B.
    error_code scales() const noexcept
    {
        if (auto ec = first_error({scale("scale_a", o.scale_a, o.m), scale("scale_b", o.scale_b, o.n),
                                   single("scale_d", o.scale_d), single("amax_d", o.amax_d)}))
            return ec;
        const bool rows = several(o.scale_a), columns = several(o.scale_b);
        if (rows && !has_each(o.scale_b, o.n))
            return op_error(errc::invalid_argument, Op::name,
                            {"scale_a has a scale for each row, then scale_b needs one for each column"});
        if (columns && !has_each(o.scale_a, o.m))
            return op_error(errc::invalid_argument, Op::name,
                            {"scale_b has a scale for each column, then scale_a needs one for each row"});
        const bool batch = o.batch > 1;
        if ((batch || float8_element<typename Op::value_type>) && (rows || columns))
            return op_error(errc::invalid_argument, Op::name,
                            {rows ? "scale_a" : "scale_b", " has ", rows ? o.scale_a.size() : o.scale_b.size(),
                             " elements, must have 1 ", batch ? "in a batch" : "with a result of fp8"});
        return {};
    }

    error_code bytes(const byte_rule& rule) const noexcept
    {
        const auto& s = p.shape;
        const auto first = names(p.b_first ? b_batch : a_batch), second = names(p.b_first ? a_batch : b_batch);
        const error_code strides =
            o.batch == 1 ? error_code{}
                         : first_error({rule.check(first.stride, p.stride_first),
                                        rule.check(second.stride, p.stride_second), rule.check("stride_d", o.stride_d),
                                        o.c.has_value() ? rule.check("stride_c", o.stride_c) : error_code{}});
        return first_error({
            rule.check_transposes(p),
            rule.check(p.b_first ? "n" : "m", s.m),
            rule.check("k", s.k),
            rule.check_ld(first.one, s.a_rows(), s.a_cols(), p.ld_first),
            rule.check_ld(second.one, s.b_rows(), s.b_cols(), p.ld_second),
            rule.check_ld(d_names, s.m, s.n, o.ldd),
            o.c.has_value() ? rule.check_ld(c_names, s.m, s.n, o.ldc) : error_code{},
            rule.check_place("a", o.a.raw),
            rule.check_place("b", o.b.raw),
            rule.check_place("d", o.d.raw),
            rule.check_place("c", o.c.raw),
            strides,
        });
    }

private:
    template <class Operand>
    error_code single(std::string_view field, const Operand& one) const noexcept
    {
        if (!one.has_value() || one.size() == 1)
            return {};
        return op_error(errc::length_mismatch, Op::name, {field, " has ", one.size(), " elements, must have 1"});
    }

    static bool several(const optional_in<float>& scales) noexcept { return scales.has_value() && scales.size() > 1; }

    static bool has_each(const optional_in<float>& scales, std::uint64_t lines) noexcept
    {
        return scales.has_value() && scales.size() == lines;
    }

    error_code scale(std::string_view field, const optional_in<float>& one, std::uint64_t lines) const noexcept
    {
        if (!one.has_value() || one.size() == 1 || one.size() == lines)
            return {};
        return op_error(errc::length_mismatch, Op::name,
                        {field, " has ", one.size(), " elements, must have 1 or ", lines});
    }
};

} // namespace detail

/// D = activation(alpha * op(A) * op(B) + beta * C + bias), with op(A) m by k, op(B) k by n, C and D m by n; or `batch`
/// such products. Without a buffer for C, C is the previous D.
///
/// A leading dimension of zero means packed matrices. Matrix i of a batch starts i * stride elements after the first
/// one. C is not read when beta is zero.
///
/// Alpha must not be zero: if beta is one, cuBLASLt then ignores the bias and the activation of a single row or column.
/// A parameter of a plan is not checked.
///
/// Real numbers are computed in f32 and rounded to the type of D. For results of 16 bits with a bias, a GPU may round
/// once more before it adds the bias.
///
/// i8: without activation and bias. Sums that exceed i32 wrap around.
///
/// fp8: on a GPU of compute capability 8.9 or later. A and B may have scales: the product is multiplied by scale_a and
/// scale_b. With one scale for each row of A and each column of B, element (i, j) is multiplied by scale_a[i] and
/// scale_b[j]; this is for single products, and on a GPU needs compute capability 9.0. A result of fp8 is multiplied by
/// scale_d before it is rounded, and amax_d becomes the greatest magnitude of what is multiplied.
///
/// i8 and fp8: in column-major order A must be transposed and B not; in row-major order B must be transposed and A not.
/// k, the rows of D (in row-major order its columns), the leading dimensions, the strides, and the places of A, B, C
/// and D in their buffers must be multiples of 4 with i8, of 16 with fp8.
template <matmul_element A, class D = detail::default_result<A>, matmul_second<A> B = detail::default_second<A>>
    requires matmul_result<D, A, B>
struct matmul {
    using value_type = D;
    using source_type = A; ///< The type of A.
    using second_type = B; ///< The type of B.
    /// The type of C and, if the product is one of real numbers, of the bias: bf16 for results of fp8, otherwise D.
    using addend_type = std::conditional_t<float8_element<D>, bfloat16, D>;
    /// That of C, except bf16 for results in f32 of factors of fp8.
    using bias_type = std::conditional_t<float8_element<A> && std::same_as<D, float>, bfloat16, addend_type>;
    using scalar_type = std::conditional_t<std::same_as<D, std::int32_t>, D, float>; ///< The type of the factors.
    static constexpr auto scalars = detail::alpha_and_beta;
    static constexpr bool tunable = true; ///< See device::async_tune.

    in<A> a;                           ///< The first factor: m by k, or k by m when transposed.
    in<B> b;                           ///< The second factor: k by n, or n by k when transposed.
    inout<D> d;                        ///< The result: m by n.
    optional_in<addend_type> c{};      ///< What is added to the product: m by n. None: the previous result.
    optional_in<bias_type> bias{};     ///< One element for each row of D; in row-major order, for each column.
    optional_in<float> scale_a{};      ///< The scale of A, or one for each row of op(A).
    optional_in<float> scale_b{};      ///< The scale of B, or one for each column of op(B).
    optional_in<float> scale_d{};      ///< The scale of D.
    optional_out<float> amax_d{};      ///< The greatest magnitude in the result before its scale.
    std::uint64_t m = 0;               ///< Rows of op(A) and D.
    std::uint64_t n = 0;               ///< Columns of op(B) and D.
    std::uint64_t k = 0;               ///< Columns of op(A) and rows of op(B).
    std::uint64_t batch = 1;           ///< The number of products.
    std::uint64_t stride_a = 0;        ///< The distance between matrices A; zero: one matrix for all products.
    std::uint64_t stride_b = 0;        ///< The distance between matrices B; zero: one matrix for all products.
    std::uint64_t stride_c = 0;        ///< The distance between matrices C; zero: one matrix for all products.
    std::uint64_t stride_d = 0;        ///< The distance between matrices D; at least the extent of one.
    scalar_type alpha = 1;             ///< The factor of the product.
    scalar_type beta = 0;              ///< The factor of C.
    transpose trans_a = transpose::no; ///< Whether A is transposed.
    transpose trans_b = transpose::no; ///< Whether B is transposed.
    std::uint64_t lda = 0;             ///< The distance between columns (in row-major order rows) of A; zero: packed.
    std::uint64_t ldb = 0;             ///< The distance between columns (in row-major order rows) of B; zero: packed.
    std::uint64_t ldc = 0;             ///< The distance between columns (in row-major order rows) of C; zero: packed.
    std::uint64_t ldd = 0;             ///< The distance between columns (in row-major order rows) of D; zero: packed.
    blas::order order = blas::order::column_major;        ///< The order of all matrices.
    blas::activation activation = blas::activation::none; ///< The function of the elements of the result.
    blas::math math = blas::math::standard; ///< The precision in which products of f32, f16, bf16 and i8 are computed.

    /// Whether A and B have a scale for each row and each column.
    constexpr bool scales_rows() const noexcept
    {
        return scale_a.has_value() && scale_b.has_value() && (scale_a.size() > 1 || scale_b.size() > 1);
    }

    error_code check() const noexcept
    {
        const detail::matmul_checks<matmul> checks{*this};
        if (auto ec = detail::first_error(
                {detail::gemm_shape{m, n, k, trans_a, trans_b}.check(name), detail::check_value(name, "order", order),
                 detail::check_value(name, "activation", activation), detail::check_value(name, "math", math),
                 detail::check_int(name, "batch", batch)}))
            return ec;
        if (alpha == 0)
            return detail::is_zero(name, "alpha");
        if (auto ec = checks.operands())
            return ec;
        if (auto ec = checks.extras())
            return ec;
        if constexpr (std::same_as<A, std::int8_t>)
            return checks.bytes({name, 4, "i8"});
        else if constexpr (float8_element<A>) {
            const auto ec = checks.scales();
            return ec ? ec : checks.bytes({name, 16, "fp8"});
        } else
            return {};
    }

    bool overwrites() const noexcept
    {
        const auto& s = detail::stored_product::of(*this).shape;
        return (beta == 0 || c.has_value()) && detail::matrix_batch{s.m, s.n, ldd, stride_d, batch, d.size()}.fills();
    }

    COACCEL_PURE_OP(blas, matmul, void, a, b, d, c, bias, scale_a, scale_b, scale_d, amax_d, m, n, k, batch, stride_a,
                    stride_b, stride_c, stride_d, alpha, beta, trans_a, trans_b, lda, ldb, ldc, ldd, order, activation,
                    math)
};

namespace detail {

template <element T>
consteval auto list_matmul()
{
    if constexpr (std::same_as<T, float> || std::same_as<T, std::int8_t>)
        return type_list<matmul<T>>{};
    else if constexpr (matmul_real<T>)
        return type_list<matmul<T>, matmul<T, float>>{};
    else if constexpr (std::same_as<T, float8_e4m3>) {
        using B = float8_e5m2;
        return type_list<matmul<T, half>, matmul<T, bfloat16>, matmul<T, float>, matmul<T, T>, matmul<T, half, B>,
                         matmul<T, bfloat16, B>, matmul<T, float, B>, matmul<T, T, B>, matmul<T, B, B>>{};
    } else if constexpr (std::same_as<T, float8_e5m2>)
        return type_list<matmul<T, half>, matmul<T, bfloat16>, matmul<T, float>, matmul<T, float8_e4m3>,
                         matmul<T, T>>{};
    else
        return type_list<>{};
}

/// Calls `f.operator()<T>()` for each type of A in an op of this header.
template <class F>
void for_each_matmul_element(const F& f)
{
    f.template operator()<float>();
    f.template operator()<half>();
    f.template operator()<bfloat16>();
    f.template operator()<std::int8_t>();
    f.template operator()<float8_e4m3>();
    f.template operator()<float8_e5m2>();
}

} // namespace detail

/// The ops of this header for one element type of A.
template <element T>
using matmul_for = decltype(detail::list_matmul<T>());

} // namespace coaccel::blas

#endif
