#ifndef COACCEL_PLAN_GRAPH_HPP
#define COACCEL_PLAN_GRAPH_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

// A graph is a plan over buffers that exist already. Each buffer is a slot: a constant if the ops only read it, a state
// if they write it. A device loads such a plan with the buffers themselves in place of memory of its own, and each run
// names them as operands, so that it is ordered with other ops on them.
namespace coaccel::detail {

/// A graph before it is loaded.
struct recorded_graph {
    std::shared_ptr<const plan_data> plan;
    /// The parts of the buffers that the slots stand for: those of the constants, then those of the states.
    std::vector<any_ref> buffers;
};

/// Makes a plan of ops over buffers. `name` is that of the plan, and begins the messages.
///
/// Errors: those of the ops' own checks, errc::invalid_argument for no ops, too many of them, an op that cannot be in a
/// plan or whose reply is its only effect, and an operand that names no buffer or no elements, errc::wrong_dtype,
/// errc::wrong_device or errc::stale_ref for buffers of different devices or contexts, errc::out_of_bounds,
/// errc::overlap.
COACCEL_DECL result<recorded_graph> record_graph(std::vector<listed_op> ops, std::string name);

/// What all runs of a graph have in common, so that a run needs no memory of its own for it.
class COACCEL_DECL graph_run {
public:
    /// `buffers`: as in recorded_graph. The plan must exist for as long as this object.
    graph_run(const plan_data& p, const plan_run_op& head, std::span<const any_ref> buffers);
    graph_run(const graph_run&) = delete;
    graph_run& operator=(const graph_run&) = delete;

    /// A plan_run_op, followed by the refs to the buffers.
    const op_info& info() const noexcept { return info_; }
    const std::vector<op_unit>& op() const noexcept { return op_; }

    /// For one run. All runs share the addresses of the operands, which are the same for each of them.
    bound_op bind() noexcept { return {.info = &info_, .op = op_.data(), .operands = addresses_.data()}; }

private:
    op_info info_;
    std::vector<op_unit> op_;
    std::vector<void*> addresses_;
};

} // namespace coaccel::detail

#endif
