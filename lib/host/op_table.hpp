#ifndef COACCEL_HOST_OP_TABLE_HPP
#define COACCEL_HOST_OP_TABLE_HPP

#include "context/op_table.hpp"
#include "host/stream.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/core/stored_reply.hpp>

#include <new>

namespace coaccel::host {

class backend;

/// How an op runs on the CPU.
struct op_code {
    /// Runs the op, in stream order. Null: the preparation does everything.
    kernel run = nullptr;
    /// Refuses fields that this backend does not implement. Null: it implements all.
    error_code (*refuse)(const bound_op&) noexcept = nullptr;
    /// Called when the op is put on its stream. Null: there is nothing to prepare.
    result<readiness> (*prepare)(backend&, stream_state&, bound_op&) = nullptr;
};

using op_table = detail::op_table<op_code>;

/// All ops of this backend.
const op_table& all_ops();

/// Calls `run` of an op, and turns its result and its exceptions into the reply and the status of the op.
template <class Library, op Op>
void run_op(bound_op& o) noexcept
{
    try {
        if constexpr (std::is_void_v<typename Op::reply>)
            Library::run(o.as<Op>(), o);
        else
            *static_cast<typename Op::reply*>(o.reply) = Library::run(o.as<Op>(), o);
    } catch (const std::bad_alloc&) {
        o.status = errc::out_of_memory;
    } catch (...) {
        o.status = errc::backend_error;
    }
}

template <class Library, op_with_storable_reply Op>
void run_and_store(bound_op& o) noexcept
{
    typename Op::reply reply{};
    bound_op own = o;
    own.reply = &reply;
    run_op<Library, Op>(own);
    o.status = own.status;
    if (!o.status)
        *o.data(o.as<stored_reply<Op>>().dst) = reply;
}

template <class Library, op Op>
void add_op(op_table& table)
{
    table.add<Op>({.run = run_op<Library, Op>});
    if constexpr (op_with_storable_reply<Op>)
        table.add<stored_reply<Op>>({.run = run_and_store<Library, Op>});
}

/// Adds all ops of a list. `Library::run(const Op&, const bound_op&)` computes an op and returns its reply: there must
/// be an overload for each op.
template <class Library, op... Ops>
void add_ops(op_table& table, type_list<Ops...>)
{
    (add_op<Library, Ops>(table), ...);
}

} // namespace coaccel::host

#endif
