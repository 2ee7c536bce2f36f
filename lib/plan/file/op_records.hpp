#ifndef COACCEL_PLAN_FILE_OP_RECORDS_HPP
#define COACCEL_PLAN_FILE_OP_RECORDS_HPP

#include "plan/file/op_values.hpp"

#include <initializer_list>
#include <map>
#include <memory>
#include <vector>

namespace coaccel::detail {

/// errc::not_savable for an op of a plan. `at` is its index.
error_code not_savable(const plan_data& plan, std::size_t at, std::initializer_list<message_part> parts);

/// Writes the ops of a plan.
class op_writer {
public:
    /// The numbers of the kernels in the file, by their ids.
    using kernel_numbers = std::map<std::uint64_t, std::uint32_t>;

    op_writer(tree_writer& out, const plan_data& plan, const kernel_numbers& kernels) noexcept
        : out_(out), values_(out), plan_(plan), kernels_(kernels)
    {}

    /// `at` is the index of the op. Errors: errc::not_savable.
    error_code write(std::size_t at);

private:
    error_code write_fields(std::size_t at);
    void write_parameters(std::size_t at);
    void write_extent(std::string_view name, const jit::dim3& d);

    tree_writer& out_;
    op_value_writer values_;
    const plan_data& plan_;
    const kernel_numbers& kernels_;
};

/// Reads the ops of a plan.
class op_reader {
public:
    /// `builder` and `slots`: for refs.
    op_reader(std::uint32_t builder, std::uint32_t slots, const std::vector<std::shared_ptr<const jit::image>>& kernels,
              file_problem& problem) noexcept
        : values_(builder, slots, problem), builder_(builder), kernels_(kernels), problem_(problem)
    {}

    /// An op as the builder takes it.
    struct op_parts {
        /// If it has its own description, it keeps it.
        listed_op op{};
        /// The fields whose values are parameters.
        std::vector<bound_field> bound;
        bool marked_pure = false;
    };

    /// `number` counts from 1.
    bool read(const node& record, std::size_t number, op_parts& made);

private:
    bool read_known(record_fields& from, const std::string& name, listed_op& made);
    bool read_launch(record_fields& from, listed_op& made);
    bool read_call(record_fields& from, listed_op& made);
    bool read_parameters(record_fields& from, const op_info& info, std::vector<bound_field>& bound);
    bool read_extent(record_fields& from, std::string_view name, jit::dim3& made);

    op_value_reader values_;
    const std::uint32_t builder_;
    const std::vector<std::shared_ptr<const jit::image>>& kernels_;
    file_problem& problem_;
};

} // namespace coaccel::detail

#endif
