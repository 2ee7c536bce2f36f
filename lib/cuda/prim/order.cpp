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
    std::uint64_t n, outer, flip, tiles;
};

struct sort_buffers {
    std::uint32_t* next;
    std::uint64_t* begins;
    std::uint64_t* states[2];
};

enum class sort_launch : std::uint64_t { clear, count, begin, move, small, short_ };

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

/// The elements of a tile of the kernel.
template <class Op>
constexpr std::uint64_t tile_of(const Op&) noexcept
{
    constexpr bool pairs = requires(const Op& op) { op.sorted_values; };
    return prim_launch::threads * (pairs || sizeof(typename Op::value_type) == 8 ? 12 : 16);
}

/// The tiles of a row.
template <class Op>
std::uint64_t tiles_of(const Op& op) noexcept
{
    return (op.n - 1) / tile_of(op) + 1;
}

/// Where a sort of rows of several tiles keeps what it needs, as distances from the beginning of its memory.
template <class T>
struct sort_memory {
    /// A number for each pass.
    std::size_t next = 0;
    /// A count for each row, byte and value of the byte. With the two before it, what must be zero at first.
    std::size_t begins;
    /// A count for each tile and value of the byte, twice.
    std::size_t states[2];
    /// The elements between two passes, of which there is only one for elements of one byte.
    std::size_t keys;
    std::size_t values;
    std::size_t bytes;

    template <class Op>
    explicit sort_memory(const Op& op) noexcept
    {
        constexpr std::size_t count = sizeof(std::uint64_t);
        const std::size_t of_tiles = op.outer * tiles_of(op) * 256 * count;
        begins = aligned(sizeof(T) * sizeof(std::uint32_t));
        states[0] = begins + op.outer * sizeof(T) * 256 * count;
        states[1] = states[0] + of_tiles;
        keys = states[1] + of_tiles;
        values = keys + (sizeof(T) == 1 ? 0 : aligned(op.outer * op.n * sizeof(T)));
        bytes = values;
        if constexpr (requires { op.sorted_values; })
            bytes += sizeof(T) == 1 ? 0 : op.outer * op.n * sizeof(std::uint64_t);
    }

    sort_buffers at(char* memory) const noexcept
    {
        if (!memory)
            return {};
        const auto counts = [memory](std::size_t at) { return reinterpret_cast<std::uint64_t*>(memory + at); };
        return {reinterpret_cast<std::uint32_t*>(memory), counts(begins), {counts(states[0]), counts(states[1])}};
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
        return op.n <= tile_of(op) ? 0 : sort_memory<typename Op::value_type>(op).bytes;
    }

    template <class T>
    static std::size_t launches(const prim::top_k<T>&)
    {
        return 2;
    }
    template <class Op>
    static std::size_t launches(const Op& op)
    {
        return op.n <= tile_of(op) ? 1 : 3 + sizeof(typename Op::value_type);
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

    enum class place : std::uint8_t { operand, result, workspace };

    /// Calls `start(blocks, launch, what, from, to)` for each launch.
    template <class Op, class Start>
    static error_code sort_rows(const Op& op, const Start& start)
    {
        using T = typename Op::value_type;
        if (op.n <= tile_of(op))
            return start(op.outer, op.n <= prim::short_sort ? sort_launch::short_ : sort_launch::small, 0,
                         place::operand, place::result);
        constexpr std::uint64_t bytes = sizeof(T);
        constexpr std::uint64_t counted = 65536;
        const std::uint64_t zeros = sort_memory<T>(op).states[1] / sizeof(std::uint32_t);
        const struct {
            std::uint64_t blocks;
            sort_launch which;
            std::uint64_t what;
        } first[] = {{zeros / prim_launch::threads + 1, sort_launch::clear, zeros},
                     {op.outer * ((op.n - 1) / counted + 1), sort_launch::count, 0},
                     {op.outer * bytes, sort_launch::begin, 0}};
        for (const auto& launch : first)
            if (auto ec = start(launch.blocks, launch.which, launch.what, place::operand, place::result))
                return ec;
        auto from = place::operand;
        for (std::uint64_t byte = 0; byte < bytes; ++byte) {
            const auto to = (bytes - byte) % 2 == 1 ? place::result : place::workspace;
            if (auto ec = start(op.outer * tiles_of(op), sort_launch::move, byte, from, to))
                return ec;
            from = to;
        }
        return {};
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::sort<T>& op, const bound_op& o)
    {
        auto* const memory = static_cast<char*>(l.workspace);
        const sort_memory<T> parts(op);
        T* const keys[] = {const_cast<T*>(o.data(op.x)), o.data(op.y),
                           memory ? reinterpret_cast<T*>(memory + parts.keys) : nullptr};
        const sort_shape shape{op.n, op.outer, flip<T>(op.order), tiles_of(op)};
        return sort_rows(op, [&](std::uint64_t blocks, sort_launch which, std::uint64_t what, place from, place to) {
            return l.blocks(blocks, which, shape, what, keys[int(from)], keys[int(to)], parts.at(memory));
        });
    }

    template <class T>
    static error_code launch(const prim_launch& l, const prim::sort_pairs<T>& op, const bound_op& o)
    {
        auto* const memory = static_cast<char*>(l.workspace);
        const sort_memory<T> parts(op);
        T* const keys[] = {const_cast<T*>(o.data(op.keys)), o.data(op.sorted_keys),
                           memory ? reinterpret_cast<T*>(memory + parts.keys) : nullptr};
        std::uint64_t* const values[] = {const_cast<std::uint64_t*>(o.data(op.values)), o.data(op.sorted_values),
                                         memory ? reinterpret_cast<std::uint64_t*>(memory + parts.values) : nullptr};
        const sort_shape shape{op.n, op.outer, flip<T>(op.order), tiles_of(op)};
        return sort_rows(op, [&](std::uint64_t blocks, sort_launch which, std::uint64_t what, place from, place to) {
            return l.blocks(blocks, which, shape, what, keys[int(from)], values[int(from)], keys[int(to)],
                            values[int(to)], parts.at(memory));
        });
    }
};

} // namespace

const prim_group prim_orders = make_prim_group<orders, prim::orders_for, number_types>();

} // namespace coaccel::cuda
