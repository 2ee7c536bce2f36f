#ifndef COACCEL_COACCEL_HPP
#define COACCEL_COACCEL_HPP

#include <coaccel/actor/actor.hpp>
#include <coaccel/actor/ask.hpp>
#include <coaccel/actor/mailbox.hpp>
#include <coaccel/actor/supervisor.hpp>
#include <coaccel/actor/watch.hpp>
#include <coaccel/core/as_result.hpp>
#include <coaccel/core/log.hpp>
#include <coaccel/core/trace.hpp>
#include <coaccel/cuda/libraries.hpp>
#include <coaccel/device/device.hpp>
#include <coaccel/device/device_options_text.hpp>
#include <coaccel/device/resident.hpp>
#include <coaccel/device/system_info.hpp>
#include <coaccel/device/warm_kernels.hpp>
#include <coaccel/device/with_retry.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/interop.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/ops/prim.hpp>
#include <coaccel/ops/rand.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

/// @namespace coaccel
/// Devices, buffers, errors and logging; actors with mailboxes and supervisors.
///
/// `device` is the entry point: its `async_` functions allocate, copy, run ops and compile kernels.

/// @namespace coaccel::memory
/// Ops that fill, copy and place memory.

/// @namespace coaccel::blas
/// Linear algebra ops: BLAS levels 1 to 3, with cuBLAS on a GPU and Eigen on the CPU.

/// @namespace coaccel::jit
/// Kernels that are compiled from source at run time, and ops that launch them.

/// @namespace coaccel::interop
/// Ops that order the work of a device and of other CUDA code in the process.

/// @namespace coaccel::plugin
/// Functions in a shared object of the user, such as kernels compiled by nvcc: the op `call`, and the interface that
/// a plug-in implements.

/// @namespace coaccel::prim
/// Ops on elements, with broadcasting; reductions, scans, sorts, gathering and moving elements; softmax and norms.

/// @namespace coaccel::rand
/// Random numbers, with cuRAND on a GPU.

/// @namespace coaccel::telemetry
/// Metrics of devices, mailboxes and the program, for Prometheus and a live page; traces for Perfetto. Not included by
/// coaccel.hpp: include coaccel/telemetry/registry.hpp, http_endpoint.hpp, nvml_source.hpp and trace_json.hpp.

/// @namespace coaccel::server
/// An inference server that speaks the Open Inference Protocol. Not included by coaccel.hpp: include
/// coaccel/server/server.hpp.

/// @namespace coaccel::serve
/// Dynamic batching, replicas, hot swap, fair share and rate limits. Not included by coaccel.hpp: in coaccel/serve are
/// dynamic_batcher.hpp, function_batcher.hpp, replica_pool.hpp, hot_swap.hpp, fair_share.hpp and rate_limiter.hpp.

/// @namespace coaccel::cuda
/// The NVIDIA libraries that the CUDA backend opens at run time.

#endif
