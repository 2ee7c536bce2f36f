#ifndef COACCEL_CUDA_VENDOR_LIBRARIES_HPP
#define COACCEL_CUDA_VENDOR_LIBRARIES_HPP

#include "cuda/loader/vendor_library.hpp"

// The list of vendor libraries, in the order of the enumeration. Each description is defined in the folder of the code
// that calls the library.
#define COACCEL_VENDOR_LIBRARIES(X)                                                                                    \
    X(driver)                                                                                                          \
    X(cublas)                                                                                                          \
    X(nvrtc)                                                                                                           \
    X(curand)                                                                                                          \
    X(cublaslt)

namespace coaccel::cuda {

#define COACCEL_DECLARE(name) extern const vendor_library_info name##_library;
COACCEL_VENDOR_LIBRARIES(COACCEL_DECLARE)
#undef COACCEL_DECLARE

} // namespace coaccel::cuda

#endif
