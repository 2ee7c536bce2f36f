#include "cuda/driver/driver_api.hpp"

#include "cuda/driver/driver_setup.hpp"
#include "cuda/driver/error.hpp"

namespace coaccel::cuda {
namespace {

constinit loaded_table<driver_api> driver;

error_code refusal(const driver_api& api, CUresult r)
{
    if (r == CUDA_ERROR_NO_DEVICE)
        return make_error_with_message(errc::no_device, api.path + ": the driver finds no GPU");
    if (r == CUDA_ERROR_STUB_LIBRARY)
        return make_error_with_message(errc::library_missing, api.path + ": the toolkit's stub, not a driver");
    if (r == CUDA_SUCCESS)
        return {};
    // No error here means a lost context: none exists yet.
    return make_error_with_message(errc::backend_unavailable, api.path + ": " + make_error(r).message());
}

} // namespace

error_code fill(driver_api& api, const symbol_lookup& find, const std::string& path)
{
    api.path = path;
    // Check the version first: an old driver would otherwise only show up as a missing symbol.
    if (const error_code ec = fill(api.cuDriverGetVersion, find, COACCEL_CUDA_SYMBOL(cuDriverGetVersion)))
        return ec;
    if (const CUresult r = api.cuDriverGetVersion(&api.version); r != CUDA_SUCCESS)
        return refusal(api, r);
    if (api.version < oldest_driver)
        return too_old(path, version_text(api.version), version_text(oldest_driver));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_CUDA_DRIVER_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL

    if (const error_code ec = fill(api.create_context, find, "cuCtxCreate_v2"))
        return ec;
    if (const error_code ec = fill(api.prefetch, find, "cuMemPrefetchAsync_v2"))
        return ec;
    return fill(api.advise, find, "cuMemAdvise_v2");
}

error_code start(const driver_api& api)
{
    return refusal(api, api.cuInit(0));
}

const driver_api* loaded_driver() noexcept
{
    return driver.peek();
}

result<const driver_api*> load_driver()
{
    return driver.get([]() -> result<std::unique_ptr<driver_api>> {
        BOOST_OUTCOME_TRY(auto library, dynamic_library::open(vendor_library::driver));
        auto api = std::make_unique<driver_api>();
        if (const error_code ec = fill(*api, symbols_of(library), library.path()))
            return ec;
        if (const error_code ec = start(*api))
            return ec;
        return api;
    });
}

} // namespace coaccel::cuda
