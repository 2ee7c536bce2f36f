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
    static std::uint64_t what(const Op& op)
    {
        if constexpr (requires { op.what; })
            return static_cast<std::uint64_t>(op.what);
        return 0;
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::unary<T>& op, const bound_op& o)
    {
        const auto loops = loops_of(op.shape, op.y.size());
        return l.elements(loops.count, loops, o.data(op.x), o.data(op.y));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::binary<T>& op, const bound_op& o)
    {
        const auto loops = loops_of(op.shape, op.c.size());
        return l.elements(loops.count, loops, o.data(op.a), o.data(op.b), o.data(op.c));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::compare<T>& op, const bound_op& o)
    {
        const auto loops = loops_of(op.shape, op.c.size());
        return l.elements(loops.count, loops, o.data(op.a), o.data(op.b), o.data(op.c));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::ternary<T>& op, const bound_op& o)
    {
        const auto loops = loops_of(op.shape, op.d.size());
        return l.elements(loops.count, loops, o.data(op.a), o.data(op.b), o.data(op.c), o.data(op.d));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::where<T>& op, const bound_op& o)
    {
        const auto loops = loops_of(op.shape, op.c.size());
        return l.elements(loops.count, loops, o.data(op.mask), o.data(op.a), o.data(op.b), o.data(op.c));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::clamp<T>& op, const bound_op& o)
    {
        const auto loops = loops_of(op.shape, op.y.size());
        return l.elements(loops.count, loops, o.data(op.x), o.data(op.y), op.low, op.high);
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::sequence<T>& op, const bound_op& o)
    {
        return l.elements(op.dst.size(), op.dst.size(), o.data(op.dst), op.start, op.step);
    }
};

template <class F, class... Ts>
void for_each_elementwise_list(F f, type_list<Ts...>)
{
    (f(prim::elementwise_for<Ts>{}), ...);
}

template <class F>
void for_each_elementwise_list(F f)
{
    for_each_elementwise_list(f, prim::floating_types{});
    for_each_elementwise_list(f, prim::integer_types{});
}

} // namespace

const prim_group prim_elementwise{
    .add_ops = [](op_table& table) { for_each_elementwise_list([&](auto ops) { add_prim<elementwise>(table, ops); }); },
    .add_kernels =
        [](std::vector<std::string>& to) {
            for_each_elementwise_list([&](auto ops) { add_kernels<elementwise>(to, ops); });
        },
};

} // namespace coaccel::cuda
