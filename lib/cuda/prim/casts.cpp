#include "cuda/prim/prim_ops.hpp"

#include <coaccel/ops/prim/elementwise.hpp>

namespace coaccel::cuda {
namespace {

struct casts {
    template <class From, class To>
    static std::string kernel(const prim::cast<From, To>&)
    {
        return kernel_name<From, To>("cast");
    }

    template <class Op>
    static error_code launch(const prim_launch& l, const Op& op, const bound_op& o)
    {
        return l.elementwise(op.shape, o);
    }
};

} // namespace

const prim_group prim_casts = make_prim_group<casts, prim::casts_from, element_types>();

} // namespace coaccel::cuda
