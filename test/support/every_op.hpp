#ifndef COACCEL_TEST_SUPPORT_EVERY_OP_HPP
#define COACCEL_TEST_SUPPORT_EVERY_OP_HPP

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/core/stored_reply.hpp>
#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/occupancy.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/prim.hpp>
#include <coaccel/ops/rand.hpp>

// All ops that backends implement, from the lists in the headers of the ops. Ops whose description differs between
// calls (launches, calls of plug-ins, functions of users) are not among them.
namespace test {

template <class F, coaccel::op... Ops>
void for_each_op_of(coaccel::type_list<Ops...>, F& f)
{
    // Not used if the list is empty.
    [[maybe_unused]] const auto call = [&]<class Op>() {
        f.template operator()<Op>();
        if constexpr (coaccel::op_with_storable_reply<Op>)
            f.template operator()<coaccel::stored_reply<Op>>();
        if constexpr (coaccel::tunable_op<Op>)
            f.template operator()<coaccel::tune<Op>>();
    };
    (call.template operator()<Ops>(), ...);
}

template <class F, coaccel::element T>
void for_each_op_on(F& f)
{
    for_each_op_of(coaccel::memory::ops_for<T>{}, f);
    for_each_op_of(coaccel::detail::transfers_of<T>{}, f);
    for_each_op_of(coaccel::blas::ops_for<T>{}, f);
    for_each_op_of(coaccel::prim::ops_for<T>{}, f);
}

/// Calls `f.operator()<Op>()` for each op and element type.
template <class F>
void for_each_op(F f)
{
    [&]<class... Ts>(coaccel::type_list<Ts...>) { (for_each_op_on<F, Ts>(f), ...); }(coaccel::element_types{});
    for_each_op_of(coaccel::rand::ops{}, f);
    // Ops without an element type are in no list. A test of the host backend fails if one is missing here.
    for_each_op_of(coaccel::type_list<coaccel::memory::trim, coaccel::jit::occupancy_op>{}, f);
}

} // namespace test

#endif
