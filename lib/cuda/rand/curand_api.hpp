#ifndef COACCEL_CUDA_RAND_CURAND_API_HPP
#define COACCEL_CUDA_RAND_CURAND_API_HPP

#include "cuda/loader/vendor_library.hpp"

#include <curand.h>

namespace coaccel::cuda {

#define COACCEL_CURAND_FUNCTIONS(X)                                                                                    \
    X(curandGetProperty)                                                                                               \
    X(curandCreateGenerator)                                                                                           \
    X(curandDestroyGenerator)                                                                                          \
    X(curandSetStream)                                                                                                 \
    X(curandSetPseudoRandomGeneratorSeed)                                                                              \
    X(curandSetGeneratorOffset)                                                                                        \
    X(curandSetGeneratorOrdering)                                                                                      \
    X(curandSetQuasiRandomGeneratorDimensions)                                                                         \
    X(curandGenerateSeeds)                                                                                             \
    X(curandGenerate)                                                                                                  \
    X(curandGenerateLongLong)                                                                                          \
    X(curandGenerateUniform)                                                                                           \
    X(curandGenerateUniformDouble)                                                                                     \
    X(curandGenerateNormal)                                                                                            \
    X(curandGenerateNormalDouble)                                                                                      \
    X(curandGenerateLogNormal)                                                                                         \
    X(curandGenerateLogNormalDouble)                                                                                   \
    X(curandGeneratePoisson)

/// The functions of cuRAND. Its version is 10000 * major + 100 * minor + patch.
struct curand_api : function_table {
    static constexpr vendor_library library = vendor_library::curand;

    /// This machine's cuRAND, opened on first use. After a failure the next call tries again. Never unloaded. May take
    /// long: do not call it on an executor.
    static result<const curand_api*> load();

#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_CURAND_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER
};

} // namespace coaccel::cuda

#endif
