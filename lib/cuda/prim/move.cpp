#include "cuda/prim/prim_ops.hpp"
#include "prim/pad_loops.hpp"

#include <coaccel/ops/prim/move.hpp>

namespace coaccel::cuda {
namespace {

/// Whether the last dimension of y is adjacent, and the one before it is adjacent in x.
bool has_tiles(const prim::loop_shape<2>& l) noexcept
{
    const auto last = l.rank - 1;
    return (l.rank == 2 || l.rank == 3) && l.strides[1][last] == 1 && l.strides[0][last - 1] == 1;
}

struct moves {
    template <class T>
    static std::string kernel(const prim::gather<T>&)
    {
        return kernel_name<T>("gather");
    }
    template <class T>
    static std::string kernel(const prim::scatter<T>&)
    {
        return kernel_name<T>("scatter");
    }
    template <class T>
    static std::string kernel(const prim::concat<T>&)
    {
        return kernel_name<T>("concat");
    }
    template <class T>
    static std::string kernel(const prim::pad<T>&)
    {
        return kernel_name<T>("pad");
    }
    template <class T>
    static std::string kernel(const prim::transpose<T>&)
    {
        return kernel_name<T>("transpose");
    }

    template <class T>
    static std::size_t workspace(const prim::scatter<T>& op)
    {
        return op.n * sizeof(std::uint64_t);
    }
    template <class T>
    static std::size_t launches(const prim::scatter<T>&)
    {
        return 3;
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::gather<T>& op, const bound_op& o)
    {
        return l.elements(op.outer * op.m * op.inner, op.n, op.m, op.outer, op.inner, o.data(op.x), o.data(op.indices),
                          o.data(op.y));
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::scatter<T>& op, const bound_op& o)
    {
        const std::uint64_t counts[] = {op.n, op.m, op.outer * op.m * op.inner};
        error_code ec;
        for (std::uint64_t launch = 0; launch < std::size(counts) && !ec; ++launch)
            ec = l.elements(counts[launch], launch, op.n, op.m, op.outer, op.inner, o.data(op.x), o.data(op.indices),
                            o.data(op.y), l.workspace);
        return ec;
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::concat<T>& op, const bound_op& o)
    {
        return l.elements(op.outer * (op.n + op.m) * op.inner, op.n, op.m, op.outer, op.inner, o.data(op.a),
                          o.data(op.b), o.data(op.y));
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::pad<T>& op, const bound_op& o)
    {
        const auto loops = loops_of(op);
        return l.elements(loops.count, loops, o.data(op.x), o.data(op.y), op.value);
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::transpose<T>& op, const bound_op& o)
    {
        const auto loops = prim::loops_of(op.shape(), op.y.size());
        if (!has_tiles(loops))
            return l.elements(loops.count, std::uint64_t(0), loops, o.data(op.x), o.data(op.y));
        constexpr std::uint64_t tile = 32 * 32;
        return l.blocks((loops.count - 1) / tile + 1, std::uint64_t(1), loops, o.data(op.x), o.data(op.y));
    }
};

} // namespace

const prim_group prim_moves = make_prim_group<moves, prim::moves_for, element_types>();

} // namespace coaccel::cuda
