#ifndef COACCEL_CUDA_PRIM_PRIM_OPS_HPP
#define COACCEL_CUDA_PRIM_PRIM_OPS_HPP

#include "context/buffers/operands.hpp"
#include "cuda/backend.hpp"
#include "cuda/prim/prim_kernels.hpp"
#include "cuda/prim/prim_workspace.hpp"
#include "prim/loop_shape.hpp"

#include <coaccel/ops/prim/types.hpp>

#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

// Shared by the ops of `prim`.
namespace coaccel::cuda {

/// The name expression of a kernel: `prefix_function` is the first argument of the template, then the element types.
template <element... Ts>
std::string kernel_name(std::string_view kernel, std::string_view function = {})
{
    std::string text = "coaccel_prim::";
    text.append(kernel);
    char before = '<';
    const auto add = [&](std::string_view argument) {
        text += before;
        text.append("coaccel_prim::").append(argument);
        before = ',';
    };
    if (!function.empty())
        add(function);
    (add(to_string(dtype_v<Ts>)), ...);
    return text + '>';
}

/// A function of the kernels: "real_exp" for prefix "real_" and the enumerator exp.
template <class Enum>
std::string function_name(const char* prefix, Enum e)
{
    return std::string(prefix) + boost::describe::enum_to_string(e, "");
}

/// Launches a kernel on a stream.
struct prim_launch {
    static constexpr unsigned threads = 256;
    /// Enough to occupy every GPU; each thread then computes several elements.
    static constexpr std::uint64_t most_blocks = 4096;

    backend& b;
    CUstream stream;
    const loaded_kernel& kernel;
    /// As many bytes as the op asked for.
    void* workspace;

    template <class... Arguments>
    error_code blocks(std::uint64_t count, Arguments... arguments) const
    {
        return exactly(std::clamp<std::uint64_t>(count, 1, most_blocks), arguments...);
    }

    /// With one thread for each element, up to a limit.
    template <class... Arguments>
    error_code elements(std::uint64_t count, Arguments... arguments) const
    {
        return blocks(count / threads + (count % threads != 0 ? 1 : 0), arguments...);
    }

    /// An elementwise op with this layout of all its operands. The kernel gets the loops, the operands, the arguments.
    template <std::size_t Operands, class... Arguments>
    error_code elementwise(const prim::layout<Operands>& shape, const bound_op& o, Arguments... arguments) const
    {
        const auto loops = loops_of(shape, detail::operand_of(o, Operands - 1).size);
        std::size_t largest = 1;
        for (std::size_t k = 0; k < Operands; ++k)
            largest = std::max(largest, size_of(detail::operand_of(o, k).type));
        // As tile_shape in kernels/elementwise.cuh. With a block for each tile, no block waits for two of them.
        const std::uint64_t tile = threads * std::min<std::uint64_t>((Operands == 2 ? 4 : 2) * (16 / largest), 16);
        constexpr std::uint64_t most_tiles = std::uint64_t(1) << 20;
        const std::uint64_t wanted = std::max(std::min(loops.count / threads + 1, most_blocks), loops.count / tile);
        return [&]<std::size_t... K>(std::index_sequence<K...>) {
            return exactly(std::min(wanted, most_tiles), loops, o.operands[K]..., arguments...);
        }(std::make_index_sequence<Operands>());
    }

private:
    template <class... Arguments>
    error_code exactly(std::uint64_t grid, Arguments... arguments) const
    {
        void* addresses[] = {&arguments...};
        return b.check(b.api().cuLaunchKernel(kernel.function, static_cast<unsigned>(grid), 1, 1, threads, 1, 1, 0,
                                              stream, addresses, nullptr));
    }
};

/// Which kernel of its type an op uses.
template <class Op>
std::uint64_t what_of(const Op& op)
{
    if constexpr (requires { op.what; })
        return static_cast<std::uint64_t>(op.what);
    return 0;
}

/// How an op of `prim` runs. `Group` has an overload for each op of
/// - `std::string kernel(const Op&)`, the name of its kernel, which depends on the field `what` only
/// - `error_code launch(const prim_launch&, const Op&, const bound_op&)`
/// and, for ops that need them, of
/// - `std::size_t workspace(const Op&)`, the bytes of prim_launch::workspace
/// - `std::size_t launches(const Op&)`, if there may be more than one.
template <class Group, class Op>
struct prim_code {
    static constexpr bool has_workspace = requires(const Op& op) { Group::workspace(op); };

    static std::string name(const void* op) { return Group::kernel(*static_cast<const Op*>(op)); }

    static prim_workspace& workspace(backend& b, stream_state& s)
    {
        return s.resources.get<prim_workspace>(b, s.native);
    }

    static std::size_t commands(const bound_op& o) noexcept
    {
        if constexpr (requires(const Op& op) { Group::launches(op); })
            return Group::launches(o.as<Op>());
        return 1;
    }

    static result<readiness> prepare(backend& b, [[maybe_unused]] stream_state& s, bound_op& o)
    {
        if (!o.state) {
            BOOST_OUTCOME_TRY(auto* acquired, b.resources().get<prim_kernels>(b).acquire(
                                                  {o.info->id, what_of(o.as<Op>())}, name, o.op));
            if (!acquired)
                return readiness::pending;
            o.state = acquired;
        }
        const auto* k = static_cast<const loaded_kernel*>(o.state);
        switch (k->where.load(std::memory_order_acquire)) {
        case loaded_kernel::stage::loading: return readiness::pending;
        case loaded_kernel::stage::ready: break;
        default: return k->error;
        }
        if constexpr (has_workspace)
            if (const std::size_t bytes = Group::workspace(o.as<Op>()))
                return workspace(b, s).prepare(bytes);
        return readiness::ready;
    }

    static error_code enqueue(backend& b, stream_state& s, bound_op& o)
    {
        const Op& op = o.as<Op>();
        const auto& kernel = *static_cast<const loaded_kernel*>(o.state);
        if constexpr (has_workspace)
            if (Group::workspace(op) != 0) {
                auto& memory = workspace(b, s);
                const auto ec = Group::launch({b, s.native, kernel, memory.memory()}, op, o);
                const auto late = memory.launched();
                return ec ? ec : late;
            }
        return Group::launch({b, s.native, kernel, nullptr}, op, o);
    }

    static error_code finish(backend& b, bound_op& o) noexcept
    {
        if (o.state)
            b.modules().release(*static_cast<loaded_kernel*>(std::exchange(o.state, nullptr)));
        return o.status;
    }
};

template <class Group, op... Ops>
void add_prim(op_table& table, type_list<Ops...>)
{
    (table.add<Ops>({.prepare = prim_code<Group, Ops>::prepare,
                     .enqueue = prim_code<Group, Ops>::enqueue,
                     .finish = prim_code<Group, Ops>::finish,
                     .commands = prim_code<Group, Ops>::commands}),
     ...);
}

/// Adds the names of all kernels of an op.
template <class Group, class Op>
void add_kernels_of(std::vector<std::string>& to)
{
    Op op{};
    if constexpr (requires { op.what; })
        boost::mp11::mp_for_each<boost::describe::describe_enumerators<decltype(op.what)>>([&](auto e) {
            op.what = e.value;
            to.push_back(Group::kernel(op));
        });
    else
        to.push_back(Group::kernel(op));
}

/// A source of ops: it adds them to the table, and the names of their kernels to a list.
struct prim_group {
    void (*add_ops)(op_table& table);
    void (*add_kernels)(std::vector<std::string>& to);
};

/// The group whose ops are `List<T>` for each type.
template <class Group, template <class> class List, class Types>
constexpr prim_group make_prim_group() noexcept
{
    return {.add_ops =
                [](op_table& table) {
                    [&]<class... Ts>(type_list<Ts...>) { (add_prim<Group>(table, List<Ts>{}), ...); }(Types{});
                },
            .add_kernels =
                [](std::vector<std::string>& to) {
                    const auto add = [&]<op... Ops>(type_list<Ops...>) { (add_kernels_of<Group, Ops>(to), ...); };
                    [&]<class... Ts>(type_list<Ts...>) { (add(List<Ts>{}), ...); }(Types{});
                }};
}

/// The types of numbers.
using number_types = boost::mp11::mp_append<prim::floating_types, prim::integer_types>;

extern const prim_group prim_casts;
extern const prim_group prim_elementwise;
extern const prim_group prim_histograms;
extern const prim_group prim_moves;
extern const prim_group prim_orders;
extern const prim_group prim_reductions;
extern const prim_group prim_rows;
extern const prim_group prim_runs;
extern const prim_group prim_scans;
extern const prim_group prim_selections;

} // namespace coaccel::cuda

#endif
