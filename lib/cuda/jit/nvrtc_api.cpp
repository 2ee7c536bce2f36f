#include "cuda/jit/nvrtc_api.hpp"

#include "cuda/driver/error.hpp"
#include "cuda/jit/nvrtc_setup.hpp"
#include "posix/file.hpp"

namespace coaccel::cuda {

error_code fill(nvrtc_api& api, const symbol_lookup& find, const std::string& path)
{
    api.path = path;
    api.build = detail::file_stamp(path);
    if (const error_code ec = fill(api.nvrtcVersion, find, COACCEL_CUDA_SYMBOL(nvrtcVersion)))
        return ec;
    int major = 0, minor = 0;
    if (const nvrtcResult r = api.nvrtcVersion(&major, &minor); r != NVRTC_SUCCESS)
        return make_error(r);
    api.version = major * 1000 + minor * 10;
    if (api.version < oldest_nvrtc)
        return too_old(path, version_text(api.version), version_text(oldest_nvrtc));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_NVRTC_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
    return {};
}

result<const nvrtc_api*> load_nvrtc()
{
    static constinit loaded_table<nvrtc_api> nvrtc;
    return nvrtc.get([]() -> result<std::unique_ptr<nvrtc_api>> {
        BOOST_OUTCOME_TRY(auto library, dynamic_library::open(vendor_library::nvrtc));
        auto api = std::make_unique<nvrtc_api>();
        if (const error_code ec = fill(*api, symbols_of(library), library.path()))
            return ec;
        return api;
    });
}

} // namespace coaccel::cuda
