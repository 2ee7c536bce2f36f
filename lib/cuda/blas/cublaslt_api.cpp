#include "cuda/blas/cublaslt_api.hpp"

#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/cublaslt_setup.hpp"
#include "cuda/vendor_libraries.hpp"

namespace coaccel::cuda {
namespace {

constexpr const char* cublaslt_sonames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

} // namespace

const vendor_library_info cublaslt_library{
    .id = vendor_library::cublaslt,
    .sonames = cublaslt_sonames,
    .wheel = "cublas",
    .disables = "blas::matmul* on GPUs",
    .version_text = three_part_version_text,
    .category = cublas_category,
    .load = [] { return as_functions(cublaslt_api::load()); },
};

error_code fill(cublaslt_api& api, const symbol_lookup& find)
{
    if (const error_code ec = fill(api.cublasLtGetProperty, find, COACCEL_CUDA_SYMBOL(cublasLtGetProperty)))
        return ec;
    int major = 0, minor = 0, patch = 0;
    for (const auto s : {api.cublasLtGetProperty(MAJOR_VERSION, &major), api.cublasLtGetProperty(MINOR_VERSION, &minor),
                         api.cublasLtGetProperty(PATCH_LEVEL, &patch)})
        if (s != CUBLAS_STATUS_SUCCESS)
            return make_error(s);
    api.version = major * 10000 + minor * 100 + patch;
    if (api.version < oldest_cublaslt)
        return too_old(api.path, three_part_version_text(api.version), three_part_version_text(oldest_cublaslt));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_CUBLASLT_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
    return {};
}

result<const cublaslt_api*> cublaslt_api::load()
{
    static constinit loaded_table<cublaslt_api> cublaslt;
    return cublaslt.get([] { return open_table<cublaslt_api>(cublaslt_library); });
}

} // namespace coaccel::cuda
