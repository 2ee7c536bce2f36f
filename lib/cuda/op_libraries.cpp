#include "cuda/op_libraries.hpp"

namespace coaccel::cuda {
namespace {

#define COACCEL_ADDRESS(name) &name##_ops,
constexpr const op_library* op_libraries[] = {COACCEL_CUDA_OP_LIBRARIES(COACCEL_ADDRESS)};
#undef COACCEL_ADDRESS

} // namespace

const op_table& all_ops()
{
    static const op_table table = [] {
        op_table t;
        for (const op_library* library : op_libraries)
            library->add_ops(t);
        return t;
    }();
    return table;
}

void add_warm_up(op_list& ops, const ref<float>& scratch)
{
    for (const op_library* library : op_libraries)
        if (library->add_warm_up)
            library->add_warm_up(ops, scratch);
}

} // namespace coaccel::cuda
