#ifndef COACCEL_TEST_SUPPORT_OP_VALUES_HPP
#define COACCEL_TEST_SUPPORT_OP_VALUES_HPP

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/prim.hpp>
#include <coaccel/ops/rand.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>

// Valid fields for ops of any type, from their descriptions.
namespace test {

/// Operands begin here, at a multiple of 16 as fp8 requires, and have so many elements, if the op permits it.
inline constexpr std::uint64_t operand_offset = 16;
inline constexpr std::uint64_t operand_elements = 62;
/// How many products an op on lists of matrices has.
inline constexpr std::uint64_t listed_products = 2;

/// Whether an op has buffers for its optional operands, as far as it permits or requires them.
enum class optional_operands { given, omitted };

inline bool is_matmul(const coaccel::op_info& info)
{
    return info.name.starts_with("blas.matmul<");
}

/// A product of fp8.
inline bool is_fp8_matmul(const coaccel::op_info& info)
{
    return is_matmul(info) && info.name.find(" from f8_") != info.name.npos;
}

inline bool is_i8_matmul(const coaccel::op_info& info)
{
    return info.name == "blas.matmul<i32 from i8>";
}

/// Whether the operand belongs to a list, such as "a[3]".
inline bool is_listed(const coaccel::op_field& f)
{
    return f.name.ends_with(']');
}

/// Whether a valid op has a buffer for this operand.
inline bool has_operand(const coaccel::op_info& info, const coaccel::op_field& f,
                        optional_operands which = optional_operands::given)
{
    if (!f.optional)
        return true;
    if (is_listed(f))
        return f.name.ends_with("[0]") || f.name.ends_with("[1]");
    if (which == optional_operands::omitted)
        return false;
    if (f.name == "scale_a" || f.name == "scale_b")
        return is_fp8_matmul(info);
    if (f.name == "scale_d" || f.name == "amax_d")
        return info.name.starts_with("blas.matmul<f8_");
    return f.name != "bias" || !is_i8_matmul(info);
}

inline std::uint64_t elements_of_operand(const coaccel::op_info& info, const coaccel::op_field& f)
{
    if (f.name.starts_with("scale_") || f.name == "amax_d")
        return 1;
    // Ops on batches check these lengths exactly: two matrices with two rows and columns.
    if (f.name == "pivots" || f.name == "tau" || f.name == "info")
        return f.name == "info" ? 2 : 4;
    const bool one =
        f.name == "count" || (f.name == "dst" && info.name.ends_with(" stored")) || info.name.starts_with("blas.rotg");
    // Sizes of fp8 are multiples of 16.
    return one ? 1 : is_fp8_matmul(info) ? 600 : operand_elements;
}

template <class T>
void set_bytes(std::byte* to, T value)
{
    std::memcpy(to, &value, sizeof(value));
}

/// A coaccel::prim::layout of vectors with operand_elements elements.
inline void set_layout(const coaccel::op_field& f, std::byte* to)
{
    using one_operand = coaccel::prim::layout<1>;
    constexpr std::size_t each = sizeof(coaccel::prim::dimensions);
    const auto shape = one_operand::vector(operand_elements);
    std::memcpy(to, &shape, sizeof(shape));
    for (std::size_t at = sizeof(shape); at < f.size; at += each)
        std::memcpy(to + at, &shape.strides[0], each);
}

/// As many elements of a field that is an array as there are.
template <class T>
void set_array(const coaccel::op_field& f, std::byte* to, T value)
{
    for (std::size_t at = 0; at < f.size; at += sizeof(T))
        set_bytes(to + at, value);
}

/// A field of gemm_grouped, which has an element for each product.
inline void set_listed_value(const coaccel::op_field& f, std::byte* to)
{
    if (f.name.starts_with("trans_"))
        set_array(f, to, std::uint8_t(1));
    else if (f.name.starts_with("ld"))
        set_array(f, to, std::uint64_t(4));
    else if (f.name.size() == 1)
        set_array(f, to, std::uint64_t(2));
    else
        // Numbers that are not zero, of any type.
        std::memset(to, 0x3c, f.size);
}

/// A value other than the default, with which the op is valid.
inline void set_value(const coaccel::op_info& info, const coaccel::op_field& f, std::byte* to,
                      optional_operands which = optional_operands::given)
{
    const std::set<std::string_view> sizes{"m",     "n",     "k",        "batch", "rows", "columns",
                                           "outer", "inner", "segments", "rank",  "bins", "nrhs"};
    const bool bytes_matmul = is_fp8_matmul(info) || is_i8_matmul(info);
    if (f.holds == coaccel::op_field::content::generator)
        set_bytes(to, coaccel::rand::make_generator({.algorithm = info.name == "rand.bits<u64>"
                                                                      ? coaccel::rand::algorithm::sobol64
                                                                      : coaccel::rand::algorithm::philox}));
    else if (info.name.starts_with("blas.her") && f.name == "trans")
        set_bytes(to, coaccel::blas::transpose::conjugate);
    else if (is_matmul(info) && which == optional_operands::omitted && f.name == "beta")
        std::memset(to, 0, f.size);
    else if ((bytes_matmul && f.name == "trans_a") || (is_i8_matmul(info) && f.name == "activation"))
        // In row-major order, B is transposed and A is not.
        set_bytes(to, std::uint8_t(0));
    else if (info.name == "blas.gemm_ex<i8>" && f.name == "trans_b")
        set_bytes(to, std::uint8_t(0));
    else if (info.name.starts_with("blas.gemm_grouped<") && f.name != "count" && f.name != "math")
        set_listed_value(f, to);
    else if (f.holds == coaccel::op_field::content::enumeration)
        set_bytes(to, std::uint8_t(f.name != "math" || info.name.ends_with("<f32>")));
    else if (info.name.starts_with("prim.") && f.name == "shape")
        set_layout(f, to);
    else if (f.size == sizeof(coaccel::prim::dimensions))
        set_bytes(to, f.name == "order" ? coaccel::prim::dimensions{0, 1} : coaccel::prim::dimensions{2, 3});
    else if (is_fp8_matmul(info) && f.size == sizeof(std::uint64_t) && f.name.size() == 1)
        set_bytes(to, std::uint64_t(16));
    else if (is_fp8_matmul(info) && f.name.starts_with("stride_"))
        set_bytes(to, std::uint64_t(256));
    else if (is_fp8_matmul(info) && f.name.starts_with("ld"))
        set_bytes(to, std::uint64_t(16));
    else if (is_i8_matmul(info) && (f.name == "n" || f.name == "k"))
        set_bytes(to, std::uint64_t(4));
    else if (f.name == "count" && f.size == sizeof(std::uint64_t))
        set_bytes(to, listed_products);
    else if (sizes.contains(f.name))
        set_bytes(to, std::uint64_t(2));
    else if (f.name.starts_with("stride_"))
        set_bytes(to, std::uint64_t(8));
    else if (f.name.starts_with("ld"))
        // A multiple of four, as i8 requires.
        set_bytes(to, std::uint64_t(4));
    else if (f.name.starts_with("inc"))
        set_bytes(to, std::int64_t(2));
    else if (f.type == coaccel::dtype::f32)
        set_bytes(to, 1.25f);
    else if (f.type == coaccel::dtype::f64)
        set_bytes(to, f.name == "high" ? 2.5 : 1.25);
    else
        std::memset(to, 0x3c, f.size);
}

} // namespace test

#endif
