#ifndef COACCEL_PLAN_FILE_RECORD_FIELDS_HPP
#define COACCEL_PLAN_FILE_RECORD_FIELDS_HPP

#include "plan/file/tree.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::detail {

/// The first problem of a file.
struct file_problem {
    errc what{};
    std::string message;
    /// Named in the message, such as "plan decode"; empty for a file of one plan.
    std::string plan;
    /// Named in the message, such as "slot 3"; empty for the plan or the file as a whole.
    std::string where;

    /// Returns false.
    bool set(errc code, std::initializer_list<message_part> parts);

    /// errc::file_invalid.
    bool invalid(std::initializer_list<message_part> parts) { return set(errc::file_invalid, parts); }
};

/// The values of a record by their names. Every function returns false after a problem: the value is missing, or has
/// another type.
class record_fields {
public:
    record_fields(const node& record, file_problem& problem);

    bool has(std::string_view name) const noexcept { return position(name) < record_.items.size(); }

    const node* get(std::string_view name, node_kind kind);
    bool get(std::string_view name, std::string& text);
    bool get(std::string_view name, bool& value);
    bool get(std::string_view name, std::vector<std::string>& texts);
    bool get(std::string_view name, std::vector<std::uint64_t>& numbers);

    template <element T>
    bool get(std::string_view name, T& value)
    {
        return get_number(name, dtype_v<T>, &value);
    }

    /// Whether there are no other values.
    bool done();

private:
    std::size_t position(std::string_view name) const noexcept;
    bool get_number(std::string_view name, dtype type, void* value);
    bool copy_number(std::string_view name, const node& from, dtype type, void* value);

    const node& record_;
    file_problem& problem_;
    std::vector<bool> used_;
};

} // namespace coaccel::detail

#endif
