#include "plan/file/known_ops.hpp"

#include <coaccel/core/stored_reply.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/prim.hpp>
#include <coaccel/ops/rand.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace coaccel::detail {
namespace {

using op_map = std::map<std::string, known_op, std::less<>>;

void add(op_map& all, const op_info& info, const void* defaults)
{
    known_op made{&info, std::vector<op_unit>(op_units(info.size))};
    std::memcpy(made.defaults.data(), defaults, info.size);
    all.emplace(info.name, std::move(made));
}

template <op Op>
void add(op_map& all)
{
    // In static storage, so that the bytes between its fields are zero.
    static constinit const Op defaults{};
    add(all, info_of<Op>(), &defaults);
}

/// A plan stores the reply of an op that has a storable one.
template <op Op>
void add_for_plans(op_map& all)
{
    if constexpr (op_with_storable_reply<Op>)
        add<stored_reply<Op>>(all);
    else
        add<Op>(all);
}

template <op... Ops>
void add_all(op_map& all, type_list<Ops...>)
{
    (add_for_plans<Ops>(all), ...);
}

template <element T>
void add_all_on(op_map& all)
{
    add_all(all, memory::ops_for<T>{});
    add_all(all, blas::ops_for<T>{});
    add_all(all, prim::ops_for<T>{});
}

template <element... Ts>
void add_all_on(op_map& all, type_list<Ts...>)
{
    (add_all_on<Ts>(all), ...);
}

} // namespace

const known_op* find_known_op(std::string_view name)
{
    static const op_map all = [] {
        op_map made;
        add_all_on(made, element_types{});
        add_all(made, rand::ops{});
        add<memory::trim>(made);
        return made;
    }();
    const auto found = all.find(name);
    return found == all.end() ? nullptr : &found->second;
}

} // namespace coaccel::detail
