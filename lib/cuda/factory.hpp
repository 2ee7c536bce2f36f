#ifndef COACCEL_CUDA_FACTORY_HPP
#define COACCEL_CUDA_FACTORY_HPP

#include "context/context.hpp"

#include <coaccel/cuda/cuda_options.hpp>

namespace coaccel::cuda {

struct driver_api;
struct cublas_api;

/// Creates contexts on a GPU. For a null table, this machine's library is used.
COACCEL_DECL detail::context_factory make_factory(const cuda_options& options, int ordinal,
                                                  const driver_api* driver = nullptr,
                                                  const cublas_api* cublas = nullptr);

} // namespace coaccel::cuda

#endif
