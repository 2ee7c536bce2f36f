#include "cuda/prim/prim_ops.hpp"

#include <coaccel/ops/prim/rows.hpp>

namespace coaccel::cuda {
namespace {

struct rows {
    template <class T>
    static std::string kernel(const prim::bias_activation<T>& op)
    {
        return kernel_name<T>("bias_activation", function_name("real_", op.what));
    }
    template <class T>
    static std::string kernel(const prim::softmax<T>&)
    {
        return kernel_name<T>("softmax", "softmax_value");
    }
    template <class T>
    static std::string kernel(const prim::log_softmax<T>&)
    {
        return kernel_name<T>("softmax", "log_softmax_value");
    }
    template <class T>
    static std::string kernel(const prim::layer_norm<T>&)
    {
        return kernel_name<T>("layer_norm");
    }
    template <class T>
    static std::string kernel(const prim::rms_norm<T>&)
    {
        return kernel_name<T>("rms_norm");
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::bias_activation<T>& op, const bound_op& o)
    {
        return l.elementwise(op.shape(), o);
    }

    // One block for each row.
    template <class T>
    static error_code launch(const prim_launch& l, const prim::softmax<T>& op, const bound_op& o)
    {
        return l.blocks(op.outer * op.inner, op.outer, op.n, op.inner, o.data(op.x), o.data(op.y));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::log_softmax<T>& op, const bound_op& o)
    {
        return l.blocks(op.outer * op.inner, op.outer, op.n, op.inner, o.data(op.x), o.data(op.y));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::layer_norm<T>& op, const bound_op& o)
    {
        return l.blocks(op.rows, op.rows, op.columns, o.data(op.x), o.data(op.scale), o.data(op.shift), o.data(op.y),
                        op.epsilon);
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::rms_norm<T>& op, const bound_op& o)
    {
        return l.blocks(op.rows, op.rows, op.columns, o.data(op.x), o.data(op.scale), o.data(op.y), op.epsilon);
    }
};

} // namespace

const prim_group prim_rows = make_prim_group<rows, prim::rows_for, prim::floating_types>();

} // namespace coaccel::cuda
