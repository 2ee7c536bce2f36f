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
    static std::uint64_t what(const Op&)
    {
        return 0;
    }

    template <class From, class To>
    static error_code launch(const prim_launch& l, const prim::cast<From, To>& op, const bound_op& o)
    {
        const auto loops = loops_of(op.shape, op.y.size());
        return l.elements(loops.count, loops, o.data(op.x), o.data(op.y));
    }
};

template <class F, class... Froms>
void for_each_cast_list(F f, type_list<Froms...>)
{
    (f(prim::casts_from<Froms>{}), ...);
}

} // namespace

const prim_group prim_casts{
    .add_ops =
        [](op_table& table) { for_each_cast_list([&](auto ops) { add_prim<casts>(table, ops); }, element_types{}); },
    .add_kernels =
        [](std::vector<std::string>& to) {
            for_each_cast_list([&](auto ops) { add_kernels<casts>(to, ops); }, element_types{});
        },
};

} // namespace coaccel::cuda
