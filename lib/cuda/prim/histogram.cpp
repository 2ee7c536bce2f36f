#include "cuda/prim/prim_ops.hpp"
#include "prim/order_slices.hpp"

#include <coaccel/ops/prim/histogram.hpp>

namespace coaccel::cuda {
namespace {

/// The kernel has the same structure.
struct histogram_shape {
    std::uint64_t n, bins;
    double low, high;
};

struct histograms {
    template <class T>
    static std::string kernel(const prim::histogram<T>&)
    {
        return kernel_name<T>("histogram");
    }

    template <class T>
    static std::size_t launches(const prim::histogram<T>&)
    {
        return 2;
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::histogram<T>& op, const bound_op& o)
    {
        const auto slices = prim::histogram_slices(op.n, op.bins);
        const histogram_shape shape{op.n, op.bins, op.low, op.high};
        const auto start = [&](std::uint64_t launch, std::uint64_t blocks) {
            return l.blocks(blocks, launch, shape, slices, o.data(op.x), o.data(op.counts));
        };
        const auto ec = start(0, (op.bins - 1) / prim_launch::threads + 1);
        return ec ? ec : start(1, slices.count);
    }
};

} // namespace

const prim_group prim_histograms = make_prim_group<histograms, prim::histograms_for, number_types>();

} // namespace coaccel::cuda
