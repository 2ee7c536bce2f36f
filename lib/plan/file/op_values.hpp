#ifndef COACCEL_PLAN_FILE_OP_VALUES_HPP
#define COACCEL_PLAN_FILE_OP_VALUES_HPP

#include "plan/file/record_fields.hpp"
#include "plan/plan_parts.hpp"

#include <cstdint>
#include <map>

// The fields of ops as values of a file.
namespace coaccel::detail {

/// Writes the fields of all ops of a plan.
class op_value_writer {
public:
    explicit op_value_writer(tree_writer& out) noexcept : out_(out) {}

    /// A field that is not an operand. The name of the value has been set.
    void value(const op_field& f, const std::byte* from);
    void operand(const op_field& f, const any_ref& r);

private:
    void generator(const rand::generator& g);

    tree_writer& out_;
    generator_numbers generators_;
};

/// Reads the fields of all ops of a plan.
class op_value_reader {
public:
    /// `builder` and `slots`: for refs.
    op_value_reader(std::uint32_t builder, std::uint32_t slots, file_problem& problem) noexcept
        : builder_(builder), slots_(slots), problem_(problem)
    {}

    /// A field of any kind. Problems: errc::unsupported_op if the value has another type than the field,
    /// errc::file_invalid if it is no value of its type.
    bool read(const node& n, const op_field& f, std::byte* to);

private:
    bool differs(const node& n, const op_field& f);
    bool operand(const node& n, const op_field& f, std::byte* to);
    bool enumerator(const node& n, const op_field& f, std::byte* to);
    bool generator(const node& n, const op_field& f, std::byte* to);

    template <class E>
    bool enumerator(record_fields& from, std::string_view name, E& value);

    std::uint32_t builder_;
    std::uint32_t slots_;
    file_problem& problem_;
    std::map<std::uint32_t, rand::generator> generators_;
};

} // namespace coaccel::detail

#endif
