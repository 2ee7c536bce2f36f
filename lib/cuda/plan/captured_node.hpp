#ifndef COACCEL_CUDA_PLAN_CAPTURED_NODE_HPP
#define COACCEL_CUDA_PLAN_CAPTURED_NODE_HPP

#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/result.hpp>

namespace coaccel::cuda {

class backend;

/// The node of the last command on a stream that is captured. Preconditions: the capture uses no other stream.
result<CUgraphNode> last_captured_node(backend& b, CUstream s);

} // namespace coaccel::cuda

#endif
