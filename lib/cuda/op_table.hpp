#ifndef COACCEL_CUDA_OP_TABLE_HPP
#define COACCEL_CUDA_OP_TABLE_HPP

#include "context/op_table.hpp"
#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/backend.hpp>

namespace coaccel::cuda {

class backend;
class stream_state;

/// How an op runs on the GPU.
struct op_code {
    /// As backend::prepare. Null: there is nothing to prepare.
    result<readiness> (*prepare)(backend&, stream_state&, bound_op&) = nullptr;
    /// As backend::enqueue. Null: the preparation includes the launch. For an op without a capture_obstacle, it may run
    /// while the stream is captured into a graph, and the graph may then run any number of times.
    error_code (*enqueue)(backend&, stream_state&, bound_op&) = nullptr;
    /// Called once the op has completed, also if preparing or launching it failed or its reply is not wanted; releases
    /// bound_op::state. Null: there is nothing to do.
    error_code (*finish)(backend&, bound_op&) noexcept = nullptr;
    /// The most commands that it puts on the stream, asked once it is there. The driver blocks a launch when too many
    /// are queued. Null: one.
    std::size_t (*commands)(const bound_op&) noexcept = nullptr;
    /// Gives the op's node in a graph the present values of the op. Only for ops with fields that are passed by value
    /// and can be parameters of a plan; such an op is one node.
    error_code (*update)(backend&, CUgraphExec, CUgraphNode, bound_op&) = nullptr;
};

using op_table = detail::op_table<op_code>;

/// All ops of this backend.
const op_table& all_ops();

} // namespace coaccel::cuda

#endif
