#include "cuda/rand/curand_api.hpp"

#include "cuda/rand/curand_error.hpp"
#include "cuda/rand/curand_setup.hpp"
#include "cuda/vendor_libraries.hpp"

namespace coaccel::cuda {
namespace {

constexpr const char* curand_sonames[] = {"libcurand.so.10"};

} // namespace

const vendor_library_info curand_library{
    .id = vendor_library::curand,
    .sonames = curand_sonames,
    .wheel = "curand",
    .disables = "rand::* on GPUs",
    .version_text = three_part_version_text,
    .category = curand_category,
    .load = [] { return as_functions(curand_api::load()); },
};

error_code fill(curand_api& api, const symbol_lookup& find)
{
    if (const error_code ec = fill(api.curandGetProperty, find, COACCEL_CUDA_SYMBOL(curandGetProperty)))
        return ec;
    int major = 0, minor = 0, patch = 0;
    for (const auto s : {api.curandGetProperty(MAJOR_VERSION, &major), api.curandGetProperty(MINOR_VERSION, &minor),
                         api.curandGetProperty(PATCH_LEVEL, &patch)})
        if (s != CURAND_STATUS_SUCCESS)
            return make_error(s);
    api.version = major * 10000 + minor * 100 + patch;
    if (api.version < oldest_curand)
        return too_old(api.path, three_part_version_text(api.version), three_part_version_text(oldest_curand));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_CURAND_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
    return {};
}

result<const curand_api*> curand_api::load()
{
    static constinit loaded_table<curand_api> curand;
    return curand.get([] { return open_table<curand_api>(curand_library); });
}

} // namespace coaccel::cuda
