#ifndef COACCEL_PLAN_FILE_OP_RECORDS_HPP
#define COACCEL_PLAN_FILE_OP_RECORDS_HPP

#include "plan/file/op_values.hpp"

#include <memory>
#include <vector>

namespace coaccel::detail {

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
