#include "telemetry/nvml_api.hpp"

#include <cstdlib>
#include <dlfcn.h>

namespace coaccel::detail {

result<nvml_api> nvml_api::load()
{
    const char* const chosen = std::getenv("COACCEL_LIBNVML");
    const std::string path = chosen && *chosen ? chosen : "libnvidia-ml.so.1";
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* const why = ::dlerror();
        return make_error_with_message(errc::library_missing, why ? why : path + " cannot be opened");
    }
    nvml_api api;
    const char* missing = nullptr;
    const auto fill = [&]<class Function>(Function*& function, const char* name) {
        function = reinterpret_cast<Function*>(::dlsym(library, name));
        if (!function && !missing)
            missing = name;
    };
#define COACCEL_NVML_FILL(name, ...) fill(api.name, #name);
    COACCEL_NVML_FUNCTIONS(COACCEL_NVML_FILL)
#undef COACCEL_NVML_FILL
    if (missing)
        return make_error_with_message(errc::library_too_old, path + " has no " + missing);
    return api;
}

} // namespace coaccel::detail
