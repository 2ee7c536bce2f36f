#include "host/op_table.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/memory.hpp>

#include <algorithm>
#include <cstring>

namespace coaccel::host {
namespace {

template <element T>
void fill(const memory::fill<T>& op, const bound_op& o)
{
    std::fill_n(o.data(op.dst), op.dst.size(), op.value);
}

template <element T>
void copy(const memory::copy<T>& op, const bound_op& o)
{
    std::memcpy(o.data(op.dst), o.data(op.src), op.src.size() * sizeof(T));
}

template <element T>
void write(const detail::write_op<T>& op, const bound_op& o)
{
    std::memcpy(o.data(op.dst), op.src, op.count * sizeof(T));
}

template <element T>
void read(const detail::read_op<T>& op, const bound_op& o)
{
    std::memcpy(op.dst, o.data(op.src), op.count * sizeof(T));
}

template <element T>
void collect(const detail::collect_op<T>& op, const bound_op& o)
{
    op.sink.append(op.sink.object, o.data(op.src), op.src.size() * sizeof(T));
}

template <element T>
void prefetch(const memory::prefetch<T>&, const bound_op&)
{}

template <element T>
void advise(const memory::advise<T>&, const bound_op&)
{}

// Registered only so that the op counts as supported: the backend trims its memory pool itself, because ops have no
// access to it.
void trim(const memory::trim&, const bound_op&) {}

template <class... Ts>
void add_for(op_table& table, type_list<Ts...>)
{
    (table.add<memory::fill<Ts>, fill<Ts>>(), ...);
    (table.add<memory::copy<Ts>, copy<Ts>>(), ...);
    (table.add<detail::write_op<Ts>, write<Ts>>(), ...);
    (table.add<detail::read_op<Ts>, read<Ts>>(), ...);
    (table.add<detail::collect_op<Ts>, collect<Ts>>(), ...);
    (table.add<memory::prefetch<Ts>, prefetch<Ts>>(), ...);
    (table.add<memory::advise<Ts>, advise<Ts>>(), ...);
}

} // namespace

void add_memory_ops(op_table& table)
{
    add_for(table, element_types{});
    table.add<memory::trim, trim>();
}

} // namespace coaccel::host
