#include "cuda/jit/nvrtc_api.hpp"

#include "cuda/jit/nvrtc_error.hpp"
#include "cuda/jit/nvrtc_setup.hpp"
#include "cuda/vendor_libraries.hpp"
#include "posix/file.hpp"

namespace coaccel::cuda {

namespace {

constexpr const char* nvrtc_sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

} // namespace

const vendor_library_info nvrtc_library{
    .id = vendor_library::nvrtc,
    .sonames = nvrtc_sonames,
    .wheel = "cuda_nvrtc",
    .disables = "async_compile, and prim::* on GPUs",
    .version_text = version_text,
    .category = nvrtc_category,
    .load = [] { return as_functions(nvrtc_api::load()); },
};

error_code fill(nvrtc_api& api, const symbol_lookup& find)
{
    api.build = detail::file_stamp(api.path);
    if (const error_code ec = fill(api.nvrtcVersion, find, COACCEL_CUDA_SYMBOL(nvrtcVersion)))
        return ec;
    int major = 0, minor = 0;
    if (const nvrtcResult r = api.nvrtcVersion(&major, &minor); r != NVRTC_SUCCESS)
        return make_error(r);
    api.version = major * 1000 + minor * 10;
    if (api.version < oldest_nvrtc)
        return too_old(api.path, version_text(api.version), version_text(oldest_nvrtc));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_NVRTC_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
    return {};
}

result<const nvrtc_api*> nvrtc_api::load()
{
    static constinit loaded_table<nvrtc_api> nvrtc;
    return nvrtc.get([] { return open_table<nvrtc_api>(nvrtc_library); });
}

} // namespace coaccel::cuda
