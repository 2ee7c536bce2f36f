#include "cuda/prim/prim_ops.hpp"
#include "prim/neutral.hpp"
#include "prim/reduction_shape.hpp"

#include <coaccel/ops/prim/reduce.hpp>

namespace coaccel::cuda {
namespace {

/// A part of a reduction: no state is larger.
constexpr std::size_t part_bytes = 16;

struct reductions {
    struct division {
        prim::reduction_shape loops;
        prim::row_slices slices;
    };

    template <class Op>
    static division divide(const Op& op)
    {
        const auto l = prim::reduction_loops(op.shape, op.x.size());
        const bool adjacent = l.elements.strides[0][l.elements.rank - 1] == 1;
        // 32 KiB, twice what a block reads at a time.
        constexpr std::uint64_t least = (std::uint64_t(32) << 10) / sizeof(typename Op::value_type);
        return {l, prim::slices_of(l.results.count, l.elements.count, adjacent, least)};
    }

    template <class T>
    static std::string kernel(const prim::reduce<T>& op)
    {
        return kernel_name<T>("reduce", function_name("reduce_", op.what));
    }
    template <class T>
    static std::string kernel(const prim::arg_reduce<T>& op)
    {
        return kernel_name<T>("arg_reduce", function_name("arg_", op.what));
    }
    template <class T>
    static std::string kernel(const prim::segmented_reduce<T>& op)
    {
        return kernel_name<T>("segmented_reduce", function_name("reduce_", op.what));
    }

    template <class Op>
        requires requires(const Op& op) { op.shape; }
    static std::size_t workspace(const Op& op)
    {
        const auto d = divide(op);
        return d.slices.count == 1 ? 0 : d.loops.results.count * d.slices.count * part_bytes;
    }

    template <class Op>
        requires requires(const Op& op) { op.shape; }
    static std::size_t launches(const Op&)
    {
        return 2;
    }

    template <class Op>
    static error_code launch(const prim_launch& l, const Op& op, const bound_op& o)
    {
        const auto d = divide(op);
        const std::uint64_t rows = d.loops.results.count;
        const auto start = [&](std::uint64_t second, std::uint64_t blocks) {
            return l.blocks(blocks, second, d.loops, d.slices, o.data(op.x), o.data(op.y), l.workspace);
        };
        if (d.slices.by_thread)
            return start(0, (rows - 1) / prim_launch::threads + 1);
        const auto ec = start(0, rows * d.slices.count);
        return ec || d.slices.count == 1 ? ec : start(1, rows);
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::segmented_reduce<T>& op, const bound_op& o)
    {
        // The lengths of the segments are known on the device only.
        constexpr std::uint64_t short_segment = 64;
        const std::uint64_t by_thread = op.rows / op.segments < short_segment ? 1 : 0;
        const std::uint64_t items = op.segments * op.columns;
        return l.blocks(by_thread ? (items - 1) / prim_launch::threads + 1 : items, by_thread, op.rows, op.segments,
                        op.columns, o.data(op.x), o.data(op.offsets), o.data(op.y), prim::neutral<T>(op.what));
    }
};

} // namespace

const prim_group prim_reductions = make_prim_group<reductions, prim::reductions_for, number_types>();

} // namespace coaccel::cuda
