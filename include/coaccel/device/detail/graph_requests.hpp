#ifndef COACCEL_DEVICE_DETAIL_GRAPH_REQUESTS_HPP
#define COACCEL_DEVICE_DETAIL_GRAPH_REQUESTS_HPP

#include <coaccel/core/op_list.hpp>
#include <coaccel/core/stored_reply.hpp>
#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/device/seq.hpp>

#include <memory>
#include <tuple>

namespace coaccel::detail {

class loaded_plan;
class plan_handle;

/// A run of a graph.
class COACCEL_DECL graph_call : public request {
public:
    /// Null if the graph is empty.
    loaded_plan* plan() const noexcept { return plan_.get(); }
    /// Why this device cannot run the graph at all. The plan must not be used then, because it may be that of another
    /// device.
    const error_code& refused() const noexcept { return refused_; }
    /// Whether it counts as a run of the plan.
    bool counted = false;

protected:
    graph_call(const core_ptr& core, const std::shared_ptr<plan_handle>& g, const exec_options& how);
    ~graph_call();

private:
    std::shared_ptr<loaded_plan> plan_;
    error_code refused_;
    bound_op bound_;
};

class graph_request : public graph_call {
public:
    static constexpr bool detachable = true;

    graph_request(const core_ptr& core, const std::shared_ptr<plan_handle>& g, const exec_options& how)
        : graph_call(core, g, how)
    {}

    auto take() { return std::tuple(ec); }

protected:
    ~graph_request() = default;
};

/// What a device uses of a graph.
struct graph_access {
    template <class Graph>
    static const std::shared_ptr<plan_handle>& handle(const Graph& g) noexcept
    {
        return g.handle_;
    }
};

/// The ops of a graph in order.
template <op... Ops>
op_list list_of(const op_seq<Ops...>& ops)
{
    static_assert((!op_with_storable_reply<Ops> && ...), "a graph returns no replies; use store_reply");
    op_list made;
    std::apply([&made](const Ops&... o) { (made.add(o), ...); }, ops.ops);
    return made;
}

} // namespace coaccel::detail

#endif
