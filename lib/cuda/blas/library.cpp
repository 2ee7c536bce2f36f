#include "cuda/blas/blas_ops.hpp"
#include "cuda/op_libraries.hpp"

namespace coaccel::cuda {
namespace {

void add_all(op_table& table)
{
    add_level1(table);
    add_level2(table);
    add_level2_batched(table);
    add_level2_symmetric(table);
    add_level2_triangular(table);
    add_level3(table);
    add_level3_elementwise(table);
    add_level3_lists(table);
    add_level3_symmetric(table);
    add_level3_triangular(table);
    add_lu_batched(table);
    add_qr_batched(table);
    add_matmul(table);
}

// Loads cuBLAS and creates a handle.
void add_product(op_list& ops, const ref<float>& scratch)
{
    ops.add(blas::gemm<float>{.a = scratch.subspan(0, 64),
                              .b = scratch.subspan(64, 64),
                              .c = scratch.subspan(128, 64),
                              .m = 8,
                              .n = 8,
                              .k = 8});
}

} // namespace

const op_library blas_ops{.add_ops = add_all, .add_warm_up = add_product};

} // namespace coaccel::cuda
