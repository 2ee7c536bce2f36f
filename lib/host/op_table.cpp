#include "host/op_table.hpp"

namespace coaccel::host {

const op_table& op_table::instance()
{
    static const op_table table = [] {
        op_table t;
        add_memory_ops(t);
        add_blas_level1(t);
        add_blas_level2(t);
        add_blas_level3(t);
        add_jit_ops(t);
        add_user_ops(t);
        return t;
    }();
    return table;
}

} // namespace coaccel::host
