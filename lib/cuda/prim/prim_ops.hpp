#ifndef COACCEL_CUDA_PRIM_PRIM_OPS_HPP
#define COACCEL_CUDA_PRIM_PRIM_OPS_HPP

#include "cuda/backend.hpp"
#include "cuda/prim/prim_kernels.hpp"
#include "prim/loop_shape.hpp"

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

    template <class... Arguments>
    error_code blocks(std::uint64_t count, Arguments... arguments) const
    {
        void* addresses[] = {&arguments...};
        const auto grid = static_cast<unsigned>(std::clamp<std::uint64_t>(count, 1, most_blocks));
        return b.check(
            b.api().cuLaunchKernel(kernel.function, grid, 1, 1, threads, 1, 1, 0, stream, addresses, nullptr));
    }

    /// With one thread for each element, up to a limit.
    template <class... Arguments>
    error_code elements(std::uint64_t count, Arguments... arguments) const
    {
        return blocks(count / threads + (count % threads != 0 ? 1 : 0), arguments...);
    }
};

/// How an op of `prim` runs. `Group` has an overload for each op of
/// - `std::string kernel(const Op&)`, the name of its kernel
/// - `std::uint64_t what(const Op&)`, which distinguishes the kernels of the op type
/// - `error_code launch(const prim_launch&, const Op&, const bound_op&)`.
template <class Group, class Op>
struct prim_code {
    static std::string name(const void* op) { return Group::kernel(*static_cast<const Op*>(op)); }

    static result<readiness> prepare(backend& b, stream_state&, bound_op& o)
    {
        if (!o.state) {
            BOOST_OUTCOME_TRY(auto* acquired, b.resources().get<prim_kernels>(b).acquire(
                                                  {o.info->id, Group::what(o.as<Op>())}, name, o.op));
            if (!acquired)
                return readiness::pending;
            o.state = acquired;
        }
        const auto* k = static_cast<const loaded_kernel*>(o.state);
        switch (k->where.load(std::memory_order_acquire)) {
        case loaded_kernel::stage::loading: return readiness::pending;
        case loaded_kernel::stage::ready: return readiness::ready;
        default: return k->error;
        }
    }

    static error_code enqueue(backend& b, stream_state& s, bound_op& o)
    {
        return Group::launch({b, s.native, *static_cast<const loaded_kernel*>(o.state)}, o.as<Op>(), o);
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
                     .capturable = always_capturable}),
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

template <class Group, op... Ops>
void add_kernels(std::vector<std::string>& to, type_list<Ops...>)
{
    (add_kernels_of<Group, Ops>(to), ...);
}

/// A source of ops: it adds them to the table, and the names of their kernels to a list.
struct prim_group {
    void (*add_ops)(op_table& table);
    void (*add_kernels)(std::vector<std::string>& to);
};

extern const prim_group prim_casts;
extern const prim_group prim_elementwise;
extern const prim_group prim_rows;

} // namespace coaccel::cuda

#endif
