#ifndef COACCEL_TEST_SUPPORT_MATMUL_CASE_HPP
#define COACCEL_TEST_SUPPORT_MATMUL_CASE_HPP

#include "support/dense.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/matmul.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

// Products of blas::matmul with random operands, compared with their definition in double precision.
namespace test {

using coaccel::blas::activation;
using coaccel::blas::order;
using coaccel::blas::transpose;

inline constexpr activation every_activation[] = {activation::none, activation::relu, activation::gelu};
inline constexpr order every_order[] = {order::column_major, order::row_major};

inline double activated(activation what, double x)
{
    switch (what) {
    case activation::none: break;
    case activation::relu: return x > 0 ? x : 0;
    case activation::gelu: return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    }
    return x;
}

/// What beta multiplies: the previous D, a C for each product, or one C for all of them.
enum class addend { previous, own, common };
/// Which scales of the factors are given: one for a whole factor, or one for each line.
enum class factor_scales { none, a, b, both, lines };

struct matmul_config {
    std::size_t m = 1, n = 1, k = 1;
    order storage = order::column_major;
    transpose trans_a = transpose::no, trans_b = transpose::no;
    std::size_t extra = 0; ///< By how many elements leading dimensions exceed packed ones. Twice as many for B and D.
    std::size_t gap = 0;   ///< Elements between the matrices of a batch.
    std::size_t batch = 1;
    bool one_a = false, one_b = false; ///< One matrix for all products.
    addend c = addend::previous;
    bool bias = false;
    activation what = activation::none;
    double alpha = 1, beta = 0;
    factor_scales scales = factor_scales::none;
    bool scale_d = false, amax_d = false;

    friend std::ostream& operator<<(std::ostream& out, const matmul_config& c)
    {
        return out << "m " << c.m << ", n " << c.n << ", k " << c.k << ", order " << int(c.storage) << ", trans_a "
                   << int(c.trans_a) << ", trans_b " << int(c.trans_b) << ", extra " << c.extra << ", gap " << c.gap
                   << ", batch " << c.batch << ", one_a " << c.one_a << ", one_b " << c.one_b << ", c " << int(c.c)
                   << ", bias " << c.bias << ", activation " << int(c.what) << ", alpha " << c.alpha << ", beta "
                   << c.beta << ", scales " << int(c.scales) << ", scale_d " << c.scale_d << ", amax_d " << c.amax_d;
    }
};

/// What is in memory where a matrix has no element.
template <class T>
T unused_element()
{
    if constexpr (std::integral<T>)
        return std::numeric_limits<T>::max();
    else
        return poison<T>();
}

template <class T>
T random_operand_element(engine& random)
{
    if constexpr (std::same_as<T, std::int8_t>)
        return static_cast<T>(random());
    else if constexpr (std::same_as<T, std::int32_t>)
        return static_cast<T>(random() % 1000) - 500;
    else if constexpr (coaccel::blas::float8_element<T>)
        return T(std::uniform_real_distribution<float>(-4, 4)(random));
    else
        return random_element<T>(random);
}

/// The matrices of one operand.
template <class T>
class matmul_matrices {
public:
    /// `unit`: what places, leading dimensions and strides are multiples of.
    matmul_matrices(const matmul_config& c, std::size_t rows, std::size_t cols, std::size_t extra, bool one,
                    std::size_t unit)
        : rows_(rows), cols_(cols), count_(one ? 1 : c.batch), by_rows_(c.storage == order::row_major),
          ld_((by_rows_ ? cols : rows) + extra * unit), begin_(unit == 1 ? margin : unit)
    {
        const std::size_t lines = by_rows_ ? rows : cols;
        const std::size_t extent = (lines - 1) * ld_ + (by_rows_ ? cols : rows);
        stride_ = (extent + unit - 1) / unit * unit + c.gap * unit;
        size_ = (count_ - 1) * stride_ + extent;
        data.assign(size_ + 2 * begin_, unused_element<T>());
    }

    void fill(engine& random)
    {
        for (std::size_t b = 0; b < count_; ++b)
            for (std::size_t i = 0; i < rows_; ++i)
                for (std::size_t j = 0; j < cols_; ++j)
                    data[place(b, i, j)] = random_operand_element<T>(random);
    }

    std::size_t place(std::size_t b, std::size_t i, std::size_t j) const
    {
        return begin_ + (count_ == 1 ? 0 : b) * stride_ + (by_rows_ ? j + i * ld_ : i + j * ld_);
    }

    double at(std::size_t b, std::size_t i, std::size_t j) const { return as_double(data[place(b, i, j)]); }
    double taken(transpose t, std::size_t b, std::size_t i, std::size_t j) const
    {
        return t == transpose::no ? at(b, i, j) : at(b, j, i);
    }

    coaccel::ref<T> in(const coaccel::buffer<T>& b) const { return b.subspan(begin_, size_); }
    /// Zero means "packed" to an op.
    std::uint64_t ld_field() const { return ld_ == (by_rows_ ? cols_ : rows_) ? 0 : ld_; }
    std::uint64_t stride_field(bool one) const { return one ? 0 : stride_; }

    /// Calls `agrees(b, i, j, value)` for each element and checks that all others are unchanged. Returns where it
    /// differs, or an empty string.
    template <class Agrees>
    std::string difference(const std::vector<T>& got, const Agrees& agrees) const
    {
        if (got.size() != data.size())
            return "another length";
        std::vector<bool> is_element(data.size());
        for (std::size_t b = 0; b < count_; ++b)
            for (std::size_t i = 0; i < rows_; ++i)
                for (std::size_t j = 0; j < cols_; ++j) {
                    is_element[place(b, i, j)] = true;
                    const std::string problem = agrees(b, i, j, got[place(b, i, j)]);
                    if (!problem.empty())
                        return "(" + std::to_string(i) + ", " + std::to_string(j) + ") of matrix " + std::to_string(b) +
                               " is " + problem;
                }
        for (std::size_t p = 0; p < data.size(); ++p)
            if (!is_element[p] && !same_bits(got[p], data[p]))
                return "place " + std::to_string(p) + " was written";
        return {};
    }

    static double as_double(T value)
    {
        if constexpr (std::integral<T>)
            return value;
        else
            return number(value);
    }

    std::vector<T> data;

private:
    std::size_t rows_, cols_, count_;
    bool by_rows_;
    std::size_t ld_, begin_, stride_ = 0, size_ = 0;
};

/// Whether the device under test is a GPU.
inline bool is_gpu(device_fixture& f)
{
    const auto stats = await(f.io, f.gpu.async_stats());
    REQUIRE(stats);
    return stats.value().backend == "cuda";
}

/// One op with its operands. Op is a blas::matmul.
template <class Op>
class matmul_case {
    using A = typename Op::source_type;
    using B = typename Op::second_type;
    using D = typename Op::value_type;
    using C = typename Op::addend_type;
    using Bias = typename Op::bias_type;
    static constexpr bool fp8 = coaccel::blas::float8_element<A>;
    static constexpr bool exact = std::integral<D>;
    static constexpr std::size_t unit = fp8 ? 16 : std::same_as<A, std::int8_t> ? 4 : 1;

public:
    matmul_case(const matmul_config& config, engine& random)
        : how(config), a(how, by_a(how.m, how.k), by_a(how.k, how.m), how.extra, how.one_a, unit),
          b(how, by_b(how.k, how.n), by_b(how.n, how.k), 2 * how.extra, how.one_b, unit),
          c(how, how.m, how.n, how.extra, how.c == addend::common, unit),
          d(how, how.m, how.n, 2 * how.extra, false, unit)
    {
        a.fill(random);
        b.fill(random);
        if (how.beta != 0) {
            // What is not multiplied must not be read.
            if (how.c == addend::previous)
                d.fill(random);
            else
                c.fill(random);
        }
        for (std::size_t i = 0; i < (how.storage == order::row_major ? how.n : how.m); ++i)
            bias.push_back(random_operand_element<Bias>(random));
        const auto scales = [&](std::size_t lines) {
            std::vector<float> made(how.scales == factor_scales::lines ? lines : 1);
            for (float& s : made)
                s = std::uniform_real_distribution<float>(0.25F, 2)(random);
            return made;
        };
        if (how.scales != factor_scales::none && how.scales != factor_scales::b)
            scale_a = scales(how.m);
        if (how.scales != factor_scales::none && how.scales != factor_scales::a)
            scale_b = scales(how.n);
        if (how.scale_d)
            scale_d = {0.75F};
    }

    /// Runs the op and compares its results. Returns the first difference, or an empty string; an error of the op is
    /// returned in `failed`.
    std::string run(device_fixture& f, bool gpu, coaccel::error_code& failed) const
    {
        const auto da = f.upload(a.data);
        const auto db = f.upload(b.data);
        const auto dd = f.upload(d.data);
        const auto dc = f.upload(c.data);
        const auto dbias = f.upload(bias);
        const auto upload_scale = [&](const std::vector<float>& s) { return f.upload(s.empty() ? unused_scale() : s); };
        const auto sa = upload_scale(scale_a), sb = upload_scale(scale_b), sd = upload_scale(scale_d);
        const auto amax = f.upload(unused_scale());
        Op op{.a = a.in(da), .b = b.in(db), .d = d.in(dd)};
        if (how.c != addend::previous)
            op.c = c.in(dc);
        if (how.bias)
            op.bias = dbias;
        if (!scale_a.empty())
            op.scale_a = sa;
        if (!scale_b.empty())
            op.scale_b = sb;
        if (!scale_d.empty())
            op.scale_d = sd;
        if (how.amax_d)
            op.amax_d = amax;
        set_fields(op);
        const auto done = exec_listed(f, op);
        if (!done) {
            failed = done.error();
            return "not run: " + failed.message();
        }
        double most = 0, most_error = 0;
        const std::string wrong =
            d.difference(f.download(dd), [&](std::size_t at, std::size_t i, std::size_t j, D got) {
                const result r = expected(at, i, j, gpu);
                most = std::max(most, std::abs(r.unscaled));
                most_error = std::max(most_error, r.unscaled_error);
                const double value = matmul_matrices<D>::as_double(got);
                return std::abs(value - r.value) <= r.error
                           ? std::string()
                           : std::to_string(value) + ", not " + std::to_string(r.value) + " within " +
                                 std::to_string(r.error);
            });
        const float found = f.download(amax).front();
        if (!wrong.empty())
            return wrong;
        if (!how.amax_d)
            return same_bits(found, unused_scale().front()) ? "" : "amax_d was written";
        return std::abs(found - most) <= most_error
                   ? ""
                   : "amax_d is " + std::to_string(found) + ", not " + std::to_string(most);
    }

    const matmul_config how;
    matmul_matrices<A> a;
    matmul_matrices<B> b;
    matmul_matrices<C> c;
    matmul_matrices<D> d;
    std::vector<Bias> bias;
    std::vector<float> scale_a, scale_b, scale_d;

private:
    struct result {
        double value, error;
        /// Before it is multiplied by scale_d.
        double unscaled, unscaled_error;
    };

    static std::vector<float> unused_scale() { return {-12345}; }

    std::size_t by_a(std::size_t plain, std::size_t transposed) const
    {
        return how.trans_a == transpose::no ? plain : transposed;
    }

    std::size_t by_b(std::size_t plain, std::size_t transposed) const
    {
        return how.trans_b == transpose::no ? plain : transposed;
    }

    void set_fields(Op& op) const
    {
        using scalar = typename Op::scalar_type;
        op.m = how.m;
        op.n = how.n;
        op.k = how.k;
        op.batch = how.batch;
        op.stride_a = a.stride_field(how.one_a);
        op.stride_b = b.stride_field(how.one_b);
        op.stride_c = c.stride_field(how.c == addend::common);
        op.stride_d = d.stride_field(false);
        op.alpha = static_cast<scalar>(how.alpha);
        op.beta = static_cast<scalar>(how.beta);
        op.trans_a = how.trans_a;
        op.trans_b = how.trans_b;
        op.lda = a.ld_field();
        op.ldb = b.ld_field();
        op.ldc = c.ld_field();
        op.ldd = d.ld_field();
        op.order = how.storage;
        op.activation = how.what;
    }

    static double scale_of(const std::vector<float>& s, std::size_t line)
    {
        return s.empty() ? 1 : s[s.size() == 1 ? 0 : line];
    }

    /// Element (i, j) of product `at`.
    result expected(std::size_t at, std::size_t i, std::size_t j, bool gpu) const
    {
        expectation sum;
        const double by = how.alpha * scale_of(scale_a, i) * scale_of(scale_b, j);
        for (std::size_t p = 0; p < how.k; ++p)
            sum.add(by * a.taken(how.trans_a, at, i, p) * b.taken(how.trans_b, at, p, j));
        if (how.beta != 0)
            sum.add(how.beta * (how.c == addend::previous ? d.at(at, i, j) : c.at(at, i, j)));
        const double without_bias = sum.value;
        if (how.bias)
            sum.add(matmul_matrices<Bias>::as_double(bias[how.storage == order::row_major ? j : i]));
        const double unscaled = activated(how.what, sum.value);
        const double scale = scale_of(scale_d, 0);
        if constexpr (exact)
            return {unscaled, 0, unscaled, 0};
        double error = sum_error(sum.magnitude);
        if (how.what == activation::gelu)
            error += 0x1p-10 * std::abs(sum.value); // A GPU computes tanh with 11 bits.
        // A GPU may round the sum to 16 bits before it adds the bias. The slope of gelu is below 1.2.
        if (gpu && sizeof(D) == 2 && how.bias)
            error += 1.2 * (unit_roundoff<D>() * std::abs(without_bias) + 0x1p-25);
        const double value = unscaled * scale;
        return {value, rounded_error(value, error * scale), unscaled, error};
    }

    /// The error bound of a sum.
    double sum_error(double magnitude) const
    {
        // Tensor cores add products of fp8 with fewer bits than f32 has.
        if constexpr (fp8)
            return 0x1p-12 * magnitude;
        // Doubled, because the reference rounds too.
        return 2 * (static_cast<double>(how.k) + (how.bias ? 5 : 4)) * 0x1p-24 * magnitude;
    }

    /// That of a value with this error, rounded to the type of D.
    static double rounded_error(double value, double error)
    {
        if constexpr (std::same_as<D, float>)
            return error;
        else if constexpr (std::same_as<D, coaccel::float8_e4m3>)
            return 1.2 * error + std::max(0x1p-4 * std::abs(value), 0x1p-10);
        else if constexpr (std::same_as<D, coaccel::float8_e5m2>)
            return 1.2 * error + std::max(0x1p-3 * std::abs(value), 0x1p-17);
        else
            return error + 2 * unit_roundoff<D>() * std::abs(value) + 0x1p-24;
    }
};

} // namespace test

#endif
