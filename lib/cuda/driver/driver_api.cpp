#include "cuda/driver/driver_api.hpp"

#include "cuda/driver/driver_setup.hpp"
#include "cuda/driver/error.hpp"
#include "cuda/vendor_libraries.hpp"

namespace coaccel::cuda {
namespace {

// libcuda.so without the number may be the toolkit's stub, which opens but does not work.
constexpr const char* driver_sonames[] = {"libcuda.so.1"};

} // namespace

const vendor_library_info driver_library{
    .id = vendor_library::driver,
    .sonames = driver_sonames,
    .wheel = nullptr,
    .disables = "device_kind::cuda",
    .version_text = version_text,
    .category = driver_category,
    .load = [] { return as_functions(driver_api::load()); },
};

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

error_code fill(driver_api& api, const symbol_lookup& find)
{
    // Check the version first: an old driver would otherwise only show up as a missing symbol.
    if (const error_code ec = fill(api.cuDriverGetVersion, find, COACCEL_CUDA_SYMBOL(cuDriverGetVersion)))
        return ec;
    if (const CUresult r = api.cuDriverGetVersion(&api.version); r != CUDA_SUCCESS)
        return refusal(api, r);
    if (api.version < oldest_driver)
        return too_old(api.path, version_text(api.version), version_text(oldest_driver));

#define COACCEL_CUDA_FILL(function)                                                                                    \
    if (const error_code ec = fill(api.function, find, COACCEL_CUDA_SYMBOL(function)))                                 \
        return ec;
    COACCEL_CUDA_DRIVER_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL
#define COACCEL_CUDA_FILL(function) (void)fill(api.function, find, COACCEL_CUDA_SYMBOL(function));
    COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(COACCEL_CUDA_FILL)
#undef COACCEL_CUDA_FILL

    if (const error_code ec = fill(api.prefetch, find, "cuMemPrefetchAsync_v2"))
        return ec;
    if (const error_code ec = fill(api.advise, find, "cuMemAdvise_v2"))
        return ec;
    if (const error_code ec = fill(api.capture_info, find, "cuStreamGetCaptureInfo_v3"))
        return ec;
    return fill(api.elapsed_time, find, "cuEventElapsedTime");
}

error_code start(const driver_api& api)
{
    return refusal(api, api.cuInit(0));
}

const driver_api* loaded_driver() noexcept
{
    return driver.peek();
}

result<const driver_api*> driver_api::load()
{
    return driver.get([]() -> result<std::unique_ptr<driver_api>> {
        BOOST_OUTCOME_TRY(auto api, open_table<driver_api>(driver_library));
        if (const error_code ec = start(*api))
            return ec;
        return api;
    });
}

} // namespace coaccel::cuda
