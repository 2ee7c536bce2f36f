#include "cuda/blas/cublas_api.hpp"

#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/cublas_setup.hpp"
#include "cuda/vendor_libraries.hpp"

namespace coaccel::cuda {
namespace {

constexpr const char* cublas_sonames[] = {"libcublas.so.13", "libcublas.so.12"};

} // namespace

const vendor_library_info cublas_library{
    .id = vendor_library::cublas,
    .sonames = cublas_sonames,
    .wheel = "cublas",
    .disables = "blas::* on GPUs",
    .version_text = three_part_version_text,
    .category = cublas_category,
    .load = [] { return as_functions(cublas_api::load()); },
};

error_code fill(cublas_api& api, const symbol_lookup& find)
{
    if (const error_code ec = fill(api.cublasGetProperty, find, COACCEL_CUDA_SYMBOL(cublasGetProperty)))
        return ec;
    int major = 0, minor = 0, patch = 0;
    for (const auto s : {api.cublasGetProperty(MAJOR_VERSION, &major), api.cublasGetProperty(MINOR_VERSION, &minor),
                         api.cublasGetProperty(PATCH_LEVEL, &patch)})
        if (s != CUBLAS_STATUS_SUCCESS)
            return make_error(s);
    api.version = major * 10000 + minor * 100 + patch;
    if (api.version < oldest_cublas)
        return too_old(api.path, three_part_version_text(api.version), three_part_version_text(oldest_cublas));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_CUBLAS_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
#define COACCEL_CUDA_FILL(function) (void)fill(api.function, find, COACCEL_CUDA_SYMBOL(function));
    COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
    return {};
}

result<const cublas_api*> cublas_api::load()
{
    static constinit loaded_table<cublas_api> cublas;
    return cublas.get([] { return open_table<cublas_api>(cublas_library); });
}

} // namespace coaccel::cuda
