#include "cuda/prim/prim_ops.hpp"
#include "prim/order_slices.hpp"

#include <coaccel/ops/prim/compact.hpp>

namespace coaccel::cuda {
namespace {

struct compactions {
    template <class T>
    static std::string kernel(const prim::select<T>&)
    {
        return kernel_name<T>("select");
    }
    template <class T>
    static std::string kernel(const prim::unique<T>&)
    {
        return kernel_name<T>("unique");
    }
    template <class T>
    static std::string kernel(const prim::run_length<T>&)
    {
        return kernel_name<T>("run_length");
    }

    template <class Op>
    static std::size_t workspace(const Op& op)
    {
        const auto s = prim::compact_slices(op.n);
        return s.count == 1 ? 0 : s.count * prim::kept_bytes;
    }

    template <class Op>
    static std::size_t launches(const Op& op)
    {
        return prim::compact_slices(op.n).count == 1 ? 2 : 4;
    }

    /// `room`: the elements of the result.
    template <class Op, class... Addresses>
    static error_code launch_all(const prim_launch& l, const Op& op, std::uint64_t room, Addresses... addresses)
    {
        const auto slices = prim::compact_slices(op.n);
        const auto start = [&](std::uint64_t launch, std::uint64_t blocks) {
            return l.blocks(blocks, launch, op.n, room, slices, addresses..., l.workspace);
        };
        if (slices.count > 1) {
            if (auto ec = start(0, slices.count))
                return ec;
            if (auto ec = start(1, 1))
                return ec;
        }
        if (auto ec = start(2, slices.count))
            return ec;
        return start(3, (room - 1) / prim_launch::threads + 1);
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::select<T>& op, const bound_op& o)
    {
        return launch_all(l, op, op.y.size(), o.data(op.x), o.data(op.mask), o.data(op.y), o.data(op.count));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::unique<T>& op, const bound_op& o)
    {
        return launch_all(l, op, op.y.size(), o.data(op.x), o.data(op.y), o.data(op.count));
    }
    template <class T>
    static error_code launch(const prim_launch& l, const prim::run_length<T>& op, const bound_op& o)
    {
        return launch_all(l, op, op.values.size(), o.data(op.x), o.data(op.values), o.data(op.lengths),
                          o.data(op.count));
    }
};

} // namespace

const prim_group prim_selections = make_prim_group<compactions, prim::selections_for, element_types>();
const prim_group prim_runs = make_prim_group<compactions, prim::runs_for, number_types>();

} // namespace coaccel::cuda
