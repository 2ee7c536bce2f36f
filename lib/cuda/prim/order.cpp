#include "cuda/prim/prim_ops.hpp"
#include "prim/order_slices.hpp"

#include <coaccel/ops/prim/order.hpp>

namespace coaccel::cuda {
namespace {

// The kernels have the same structures.
struct top_k_shape {
    std::uint64_t n, k, outer, flip;
};

struct sort_shape {
    std::uint64_t n, outer, flip;
};

/// All bits of a key for the descending order.
template <class T>
constexpr std::uint64_t flip(prim::sort_order o) noexcept
{
    return o == prim::sort_order::ascending ? 0 : ~std::uint64_t(0) >> (64 - 8 * sizeof(T));
}

constexpr std::size_t aligned(std::size_t bytes) noexcept
{
    return (bytes + 15) / 16 * 16;
}

/// The slices of each row. The tile is that of the kernel.
template <class Op>
prim::order_slices slices_of(const Op& op) noexcept
{
    constexpr bool pairs = requires { op.sorted_values; };
    constexpr std::uint64_t by_thread = pairs || sizeof(typename Op::value_type) == 8 ? 8 : 16;
    return prim::sort_slices(op.outer, op.n, prim_launch::threads * by_thread);
}

/// Counts for each value of a byte in each row and, if there are several slices, in each slice.
constexpr std::uint64_t counts_of(std::uint64_t rows, std::uint64_t slices) noexcept
{
    return rows * 256 * (slices == 1 ? 1 : slices + 1);
}

/// Where a sort keeps what it needs: the counts, and the elements between two of its passes.
template <class T>
struct sort_memory {
    std::size_t keys;
    std::size_t values;
    std::size_t bytes;

    template <class Op>
    explicit sort_memory(const Op& op) noexcept
        : keys(aligned(counts_of(op.outer, slices_of(op).count) * sizeof(std::uint64_t))), values(keys), bytes(keys)
    {
        // A single pass moves the elements to their places.
        if (sizeof(T) == 1)
            return;
        values = keys + aligned(op.outer * op.n * sizeof(T));
        bytes = values;
        if constexpr (requires { op.sorted_values; })
            bytes += op.outer * op.n * sizeof(std::uint64_t);
    }
};

struct orders {
    template <class T>
    static std::string kernel(const prim::top_k<T>&)
    {
        return kernel_name<T>("top_k");
    }
    template <class T>
    static std::string kernel(const prim::sort<T>&)
    {
        return kernel_name<T>("sort");
    }
    template <class T>
    static std::string kernel(const prim::sort_pairs<T>&)
    {
        return kernel_name<T>("sort_pairs");
    }

    template <class T>
    static std::size_t workspace(const prim::top_k<T>& op)
    {
        const auto s = prim::top_k_slices(op.outer, op.n, op.k);
        return s.count == 1 ? 0 : op.outer * s.count * op.k * (sizeof(std::uint64_t) + sizeof(T));
    }
    template <class Op>
    static std::size_t workspace(const Op& op)
    {
        return op.n <= prim::short_sort ? 0 : sort_memory<typename Op::value_type>(op).bytes;
    }

    template <class T>
    static std::size_t launches(const prim::top_k<T>&)
    {
        return 2;
    }
    template <class Op>
    static std::size_t launches(const Op& op)
    {
        if (op.n <= prim::short_sort)
            return 1;
        return (slices_of(op).count == 1 ? 2 : 3) * sizeof(typename Op::value_type);
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::top_k<T>& op, const bound_op& o)
    {
        const auto slices = prim::top_k_slices(op.outer, op.n, op.k);
        const top_k_shape shape{op.n, op.k, op.outer, flip<T>(op.order)};
        auto* const part_indices = static_cast<std::uint64_t*>(l.workspace);
        auto* const part_values = part_indices ? part_indices + op.outer * slices.count * op.k : nullptr;
        const auto start = [&](std::uint64_t second, std::uint64_t blocks) {
            return l.blocks(blocks, second, shape, slices, o.data(op.x), o.data(op.values), o.data(op.indices),
                            part_values, part_indices);
        };
        const auto ec = start(0, op.outer * slices.count);
        return ec || slices.count == 1 ? ec : start(1, op.outer);
    }

    /// Calls `start(blocks, launch, shift, from_result, to_result)` for each launch. The last two tell whether the
    /// elements are in the result or in the workspace; the first pass reads the operand.
    template <class Op, class Start>
    static error_code sort_rows(const Op& op, const Start& start)
    {
        enum class place : std::uint8_t { operand, result, workspace };
        if (op.n <= prim::short_sort)
            return start(op.outer, 3, 0, place::operand, place::result);
        const auto slices = slices_of(op);
        constexpr std::uint64_t passes = sizeof(typename Op::value_type);
        auto from = place::operand;
        for (std::uint64_t pass = 0; pass < passes; ++pass) {
            const auto to = (passes - pass) % 2 == 1 ? place::result : place::workspace;
            // The second launch has a warp for each row and value of the byte.
            const std::uint64_t blocks[] = {op.outer * slices.count, op.outer * 256 / 8, op.outer * slices.count};
            for (std::uint64_t launch = 0; launch < 3; ++launch)
                if (launch != 1 || slices.count > 1)
                    if (auto ec = start(blocks[launch], launch, 8 * pass, from, to))
                        return ec;
            from = to;
        }
        return {};
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::sort<T>& op, const bound_op& o)
    {
        auto* const memory = static_cast<char*>(l.workspace);
        T* const keys[] = {const_cast<T*>(o.data(op.x)), o.data(op.y),
                           memory ? reinterpret_cast<T*>(memory + sort_memory<T>(op).keys) : nullptr};
        return sort_rows(op, [&](std::uint64_t blocks, std::uint64_t launch, std::uint64_t shift, auto from, auto to) {
            return l.blocks(blocks, launch, sort_shape{op.n, op.outer, flip<T>(op.order)}, slices_of(op), shift,
                            keys[int(from)], keys[int(to)], l.workspace);
        });
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::sort_pairs<T>& op, const bound_op& o)
    {
        auto* const memory = static_cast<char*>(l.workspace);
        const sort_memory<T> at(op);
        T* const keys[] = {const_cast<T*>(o.data(op.keys)), o.data(op.sorted_keys),
                           memory ? reinterpret_cast<T*>(memory + at.keys) : nullptr};
        std::uint64_t* const values[] = {const_cast<std::uint64_t*>(o.data(op.values)), o.data(op.sorted_values),
                                         memory ? reinterpret_cast<std::uint64_t*>(memory + at.values) : nullptr};
        return sort_rows(op, [&](std::uint64_t blocks, std::uint64_t launch, std::uint64_t shift, auto from, auto to) {
            return l.blocks(blocks, launch, sort_shape{op.n, op.outer, flip<T>(op.order)}, slices_of(op), shift,
                            keys[int(from)], values[int(from)], keys[int(to)], values[int(to)], l.workspace);
        });
    }
};

} // namespace

const prim_group prim_orders = make_prim_group<orders, prim::orders_for, number_types>();

} // namespace coaccel::cuda
