#include "cuda/prim/prim_ops.hpp"
#include "prim/neutral.hpp"
#include "prim/reduction_shape.hpp"

#include <coaccel/ops/prim/scan.hpp>

namespace coaccel::cuda {
namespace {

/// The kernel has the same structure.
struct scan_shape {
    std::uint64_t n, outer, inner, exclusive;
};

struct scans {
    /// A part of a scan: no state is larger.
    static constexpr std::size_t part_bytes = 8;

    template <class T>
    static prim::row_slices divide(const prim::scan<T>& op)
    {
        constexpr std::uint64_t least = 8192;
        return prim::slices_of(op.outer * op.inner, op.n, op.inner == 1, least);
    }

    template <class T>
    static std::string kernel(const prim::scan<T>& op)
    {
        return kernel_name<T>("scan", function_name("reduce_", op.what));
    }

    template <class T>
    static std::size_t workspace(const prim::scan<T>& op)
    {
        const auto s = divide(op);
        return s.count == 1 ? 0 : op.outer * op.inner * s.count * part_bytes;
    }

    template <class T>
    static std::size_t launches(const prim::scan<T>&)
    {
        return 3;
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::scan<T>& op, const bound_op& o)
    {
        const scan_shape shape{op.n, op.outer, op.inner, op.range == prim::scan_range::exclusive ? 1u : 0u};
        const auto slices = divide(op);
        const std::uint64_t rows = op.outer * op.inner;
        const auto start = [&](std::uint64_t launch, std::uint64_t blocks) {
            return l.blocks(blocks, launch, shape, slices, o.data(op.x), o.data(op.y), prim::neutral<T>(op.what),
                            l.workspace);
        };
        if (slices.by_thread)
            return start(2, (rows - 1) / prim_launch::threads + 1);
        if (slices.count > 1) {
            if (auto ec = start(0, rows * slices.count))
                return ec;
            if (auto ec = start(1, rows))
                return ec;
        }
        return start(2, rows * slices.count);
    }
};

} // namespace

const prim_group prim_scans = make_prim_group<scans, prim::scans_for, number_types>();

} // namespace coaccel::cuda
