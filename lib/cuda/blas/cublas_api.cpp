#include "cuda/blas/cublas_api.hpp"

#include "cuda/blas/cublas_setup.hpp"
#include "cuda/driver/error.hpp"

namespace coaccel::cuda {
namespace {

std::string cublas_version_text(int version)
{
    return std::to_string(version / 10000) + '.' + std::to_string(version % 10000 / 100);
}

} // namespace

error_code fill(cublas_api& api, const symbol_lookup& find, const std::string& path)
{
    api.path = path;
    if (const error_code ec = fill(api.cublasGetProperty, find, COACCEL_CUDA_SYMBOL(cublasGetProperty)))
        return ec;
    int major = 0, minor = 0, patch = 0;
    for (const auto s : {api.cublasGetProperty(MAJOR_VERSION, &major), api.cublasGetProperty(MINOR_VERSION, &minor),
                         api.cublasGetProperty(PATCH_LEVEL, &patch)})
        if (s != CUBLAS_STATUS_SUCCESS)
            return make_error(s);
    api.version = major * 10000 + minor * 100 + patch;
    if (api.version < oldest_cublas)
        return too_old(path, cublas_version_text(api.version), cublas_version_text(oldest_cublas));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_CUBLAS_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
    return {};
}

result<const cublas_api*> load_cublas()
{
    static constinit loaded_table<cublas_api> cublas;
    return cublas.get([]() -> result<std::unique_ptr<cublas_api>> {
        BOOST_OUTCOME_TRY(auto library, dynamic_library::open(vendor_library::cublas));
        auto api = std::make_unique<cublas_api>();
        if (const error_code ec = fill(*api, symbols_of(library), library.path()))
            return ec;
        return api;
    });
}

} // namespace coaccel::cuda
