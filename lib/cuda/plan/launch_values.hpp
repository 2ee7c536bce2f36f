#ifndef COACCEL_CUDA_PLAN_LAUNCH_VALUES_HPP
#define COACCEL_CUDA_PLAN_LAUNCH_VALUES_HPP

#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/op_list.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace coaccel::cuda {

class backend;

/// The launches of an instance that have parameters among their arguments. A graph contains the values of arguments, so
/// its nodes are changed before a run that has other values than the last one.
class launch_values {
public:
    /// Adds an argument, in the order of the ops. `from`: its position in the staged inputs, in bytes.
    void add(std::uint32_t op, const op_field& argument, std::uint64_t from);
    bool empty() const noexcept { return launches_.empty(); }

    /// Call this when an op has been captured.
    error_code captured(backend& b, CUstream s, std::size_t op);

    /// Gives the ops the values of a run, and their nodes too unless `graph` is null. `records`: what `ops` refer to.
    error_code set(backend& b, CUgraphExec graph, std::span<detail::listed_op> records, std::span<bound_op> ops,
                   const std::byte* staged_inputs);

private:
    struct value {
        std::uint32_t offset;
        std::uint32_t bytes;
        std::uint64_t from;
    };

    struct launch {
        std::uint32_t op = 0;
        std::vector<value> values;
        CUgraphNode node = nullptr;
        /// The node has other values than the op.
        bool outdated = false;
    };

    std::vector<launch> launches_;
};

} // namespace coaccel::cuda

#endif
