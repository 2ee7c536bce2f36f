#include "host/backend.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/memory.hpp>

#include <algorithm>
#include <cstring>

namespace coaccel::host {
namespace {

struct memory_ops {
    template <element T>
    static void run(const memory::fill<T>& op, const bound_op& o)
    {
        std::fill_n(o.data(op.dst), op.dst.size(), op.value);
    }

    template <element T>
    static void run(const memory::copy<T>& op, const bound_op& o)
    {
        std::memcpy(o.data(op.dst), o.data(op.src), op.src.size() * sizeof(T));
    }

    template <element T>
    static void run(const detail::write_op<T>& op, const bound_op& o)
    {
        std::memcpy(o.data(op.dst), op.src, op.count * sizeof(T));
    }

    template <element T>
    static void run(const detail::read_op<T>& op, const bound_op& o)
    {
        std::memcpy(op.dst, o.data(op.src), op.count * sizeof(T));
    }

    template <element T>
    static void run(const detail::collect_op<T>& op, const bound_op& o)
    {
        op.sink.append(op.sink.object, o.data(op.src), op.src.size() * sizeof(T));
    }

    template <element T>
    static void run(const memory::prefetch<T>&, const bound_op&)
    {}

    template <element T>
    static void run(const memory::advise<T>&, const bound_op&)
    {}
};

result<readiness> trim(backend& b, stream_state&, bound_op&)
{
    b.trim();
    return readiness::launched;
}

template <class... Ts>
void add_for(op_table& table, type_list<Ts...>)
{
    (add_ops<memory_ops>(table, memory::ops_for<Ts>{}), ...);
    (add_ops<memory_ops>(table, detail::transfers_of<Ts>{}), ...);
}

} // namespace

void add_memory(op_table& table)
{
    add_for(table, element_types{});
    table.add<memory::trim>({.prepare = trim});
}

} // namespace coaccel::host
