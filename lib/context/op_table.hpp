#ifndef COACCEL_CONTEXT_OP_TABLE_HPP
#define COACCEL_CONTEXT_OP_TABLE_HPP

#include <coaccel/core/op.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

namespace coaccel::detail {

/// The ops that a backend implements, by id. Code is the backend's way to run an op.
template <class Code>
class op_table {
public:
    /// Null if the op is not implemented.
    const Code* find(std::uint64_t id) const noexcept
    {
        const auto found = rows_.find(id);
        return found == rows_.end() ? nullptr : &found->second.code;
    }

    /// Null if the op is not implemented, or if its description differs between calls.
    const op_info* describe(std::uint64_t id) const noexcept
    {
        const auto found = rows_.find(id);
        return found == rows_.end() ? nullptr : found->second.info;
    }

    template <op Op>
    void add(const Code& code)
    {
        rows_.emplace(info_of<Op>().id, row{code, &info_of<Op>()});
    }

    /// For ops whose description differs between calls.
    void add(std::uint64_t id, const Code& code) { rows_.emplace(id, row{code, nullptr}); }

    /// Calls `f` with the description of each op that has a fixed one.
    template <class F>
    void for_each(F f) const
    {
        for (const auto& [id, row] : rows_)
            if (row.info)
                f(*row.info);
    }

private:
    struct row {
        Code code;
        const op_info* info;
    };

    boost::unordered_flat_map<std::uint64_t, row> rows_;
};

} // namespace coaccel::detail

#endif
