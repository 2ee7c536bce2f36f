#ifndef COACCEL_HOST_OP_TABLE_HPP
#define COACCEL_HOST_OP_TABLE_HPP

#include "host/stream.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <new>

namespace coaccel::host {

/// Maps ops to the kernels that run them.
class op_table {
public:
    static const op_table& instance();

    kernel find(std::uint64_t id) const noexcept
    {
        const auto found = kernels_.find(id);
        return found == kernels_.end() ? nullptr : found->second.run;
    }

    const op_info* describe(std::uint64_t id) const noexcept
    {
        const auto found = kernels_.find(id);
        return found == kernels_.end() ? nullptr : found->second.info;
    }

    /// Calls `f` with the description of each op that has a fixed one.
    template <class F>
    void for_each(F f) const
    {
        for (const auto& [id, entry] : kernels_)
            if (entry.info)
                f(*entry.info);
    }

    /// Run has the signature `reply run(const Op&, const bound_op&)`.
    template <op Op, auto Run>
    void add()
    {
        kernels_[info_of<Op>().id] = {[](bound_op& o) noexcept {
                                          guard(o, [&] {
                                              if constexpr (std::is_void_v<typename Op::reply>)
                                                  Run(o.as<Op>(), o);
                                              else
                                                  *static_cast<typename Op::reply*>(o.reply) = Run(o.as<Op>(), o);
                                          });
                                      },
                                      &info_of<Op>()};
    }

    /// For ops whose description differs between calls.
    void add(std::uint64_t id, kernel k) { kernels_[id] = {k, nullptr}; }

private:
    template <class F>
    static void guard(bound_op& o, F&& f) noexcept
    {
        try {
            f();
        } catch (const std::bad_alloc&) {
            o.status = errc::out_of_memory;
        } catch (...) {
            o.status = errc::backend_error;
        }
    }

    struct entry {
        kernel run = nullptr;
        const op_info* info = nullptr;
    };

    boost::unordered_flat_map<std::uint64_t, entry> kernels_;
};

void add_memory_ops(op_table& table);
void add_blas_level1(op_table& table);
void add_blas_level2(op_table& table);
void add_blas_level3(op_table& table);
void add_jit_ops(op_table& table);
void add_user_ops(op_table& table);

} // namespace coaccel::host

#endif
