#ifndef COACCEL_CUDA_FACTORY_HPP
#define COACCEL_CUDA_FACTORY_HPP

#include "context/context.hpp"
#include "cuda/loader/library_tables.hpp"

#include <coaccel/cuda/cuda_options.hpp>

namespace coaccel::cuda {

/// Creates contexts on a GPU.
COACCEL_DECL detail::context_factory make_factory(const cuda_options& options, int ordinal,
                                                  const library_tables& libraries = {});

} // namespace coaccel::cuda

#endif
