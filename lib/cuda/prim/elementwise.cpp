#include "cuda/prim/prim_ops.hpp"

#include <coaccel/ops/prim/elementwise.hpp>

namespace coaccel::cuda {
namespace {

struct elementwise {
    template <class T>
    static std::string kernel(const prim::unary<T>& op)
    {
        return kernel_name<T>("unary", function_name(prim::floating<T> ? "real_" : "integer_", op.what));
    }
    template <class T>
    static std::string kernel(const prim::binary<T>& op)
    {
        return kernel_name<T>("binary", function_name(prim::floating<T> ? "real2_" : "integer2_", op.what));
    }
    template <class T>
    static std::string kernel(const prim::compare<T>& op)
    {
        return kernel_name<T>("compare", function_name("compare_", op.what));
    }
    template <class T>
    static std::string kernel(const prim::ternary<T>& op)
    {
        return kernel_name<T>("ternary", function_name("ternary_", op.what));
    }
    template <class T>
    static std::string kernel(const prim::where<T>&)
    {
        return kernel_name<T>("where");
    }
    template <class T>
    static std::string kernel(const prim::clamp<T>&)
    {
        return kernel_name<T>("clamp");
    }
    template <class T>
    static std::string kernel(const prim::sequence<T>&)
    {
        return kernel_name<T>("sequence");
    }

    template <class Op>
    static error_code launch(const prim_launch& l, const Op& op, const bound_op& o)
    {
        return l.elementwise(op.shape, o);
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::clamp<T>& op, const bound_op& o)
    {
        return l.elementwise(op.shape, o, op.low, op.high);
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::sequence<T>& op, const bound_op& o)
    {
        return l.elements(op.dst.size(), op.dst.size(), o.data(op.dst), op.start, op.step);
    }
};

} // namespace

const prim_group prim_elementwise = make_prim_group<elementwise, prim::elementwise_for, number_types>();

} // namespace coaccel::cuda
