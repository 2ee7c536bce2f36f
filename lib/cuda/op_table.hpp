#ifndef COACCEL_CUDA_OP_TABLE_HPP
#define COACCEL_CUDA_OP_TABLE_HPP

#include <coaccel/core/backend.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

namespace coaccel::cuda {

class backend;
class stream_state;

/// The functions that run an op on the GPU. `finish` is optional. It is called once the op has completed, also when
/// `enqueue` failed or the reply is not wanted, and releases bound_op::state.
struct op_entry {
    result<progress> (*enqueue)(backend&, stream_state&, bound_op&) = nullptr;
    error_code (*finish)(backend&, bound_op&) noexcept = nullptr;
    /// Null if it differs from call to call.
    const op_info* info = nullptr;
};

/// Maps op ids to their functions.
class op_table {
public:
    static const op_table& instance();

    const op_entry* find(std::uint64_t id) const noexcept
    {
        const auto found = entries_.find(id);
        return found == entries_.end() ? nullptr : &found->second;
    }

    void add(std::uint64_t id, op_entry e) { entries_.emplace(id, e); }

    /// Run: `result<progress> run(backend&, stream_state&, bound_op&)`. Finish: `error_code finish(backend&, bound_op&)
    /// noexcept`.
    template <op Op, auto Run>
    void add()
    {
        add(info_of<Op>().id, {Run, nullptr, &info_of<Op>()});
    }

    template <op Op, auto Run, auto Finish>
    void add()
    {
        add(info_of<Op>().id, {Run, Finish, &info_of<Op>()});
    }

private:
    boost::unordered_flat_map<std::uint64_t, op_entry> entries_;
};

void add_memory_ops(op_table& table);
void add_blas_level1(op_table& table);
void add_blas_level2(op_table& table);
void add_blas_level3(op_table& table);
void add_jit_ops(op_table& table);
void add_user_ops(op_table& table);

} // namespace coaccel::cuda

#endif
