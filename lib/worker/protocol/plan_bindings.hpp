#ifndef COACCEL_WORKER_PROTOCOL_PLAN_BINDINGS_HPP
#define COACCEL_WORKER_PROTOCOL_PLAN_BINDINGS_HPP

#include "worker/protocol/codec.hpp"

#include <coaccel/plan/detail/plan_data.hpp>

// The fields of a plan's ops that are parameters.
namespace coaccel::worker {

void put_bindings(encoder& out, const detail::plan_data& p);

/// Replaces the bindings of a plan whose slots and ops are complete. Errors: errc::invalid_argument.
error_code get_bindings(decoder& in, detail::plan_data& p);

/// Completes the description of a launch with fields for all arguments, as the sender has them. Other ops stay as they
/// are.
void describe_arguments(op_info& info, const detail::listed_op& o);

} // namespace coaccel::worker

#endif
