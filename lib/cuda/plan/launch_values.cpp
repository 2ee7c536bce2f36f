#include "cuda/plan/launch_values.hpp"

#include "cuda/backend.hpp"
#include "cuda/plan/captured_node.hpp"

#include <algorithm>
#include <cstring>

namespace coaccel::cuda {

void launch_values::add(std::uint32_t op, const op_field& argument, std::uint64_t from)
{
    if (launches_.empty() || launches_.back().op != op)
        launches_.push_back({.op = op, .values = {}});
    launches_.back().values.push_back({argument.offset, argument.size, from});
}

error_code launch_values::captured(backend& b, CUstream s, std::size_t op)
{
    const auto found = std::ranges::lower_bound(launches_, op, {}, &launch::op);
    if (found == launches_.end() || found->op != op)
        return {};
    const auto node = last_captured_node(b, s);
    if (!node)
        return node.error();
    found->node = node.value();
    found->outdated = false;
    return {};
}

error_code launch_values::set(backend& b, CUgraphExec graph, std::span<detail::listed_op> records,
                              std::span<bound_op> ops, const std::byte* staged_inputs)
{
    for (launch& l : launches_) {
        auto* const op = reinterpret_cast<std::byte*>(records[l.op].record.op.data());
        for (const value& v : l.values) {
            if (std::memcmp(op + v.offset, staged_inputs + v.from, v.bytes) == 0)
                continue;
            std::memcpy(op + v.offset, staged_inputs + v.from, v.bytes);
            l.outdated = true;
        }
        if (!graph || !l.outdated)
            continue;
        bound_op& o = ops[l.op];
        if (auto ec = static_cast<const op_code*>(o.code)->update(b, graph, l.node, o))
            return ec;
        l.outdated = false;
    }
    return {};
}

} // namespace coaccel::cuda
