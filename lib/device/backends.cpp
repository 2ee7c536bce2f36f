#include "device/backends.hpp"

#ifdef COACCEL_HAS_HOST
#include "host/factory.hpp"
#endif

namespace coaccel::detail {

result<context_source> find_backend(const device_options& options)
{
    switch (options.kind) {
    case device_kind::best:
    case device_kind::host:
#ifdef COACCEL_HAS_HOST
        return context_source{host::make_factory(options.host), options.host.mode == host_mode::pool};
#else
        break;
#endif
    case device_kind::cuda: break;
    }
    return errc::backend_unavailable;
}

} // namespace coaccel::detail
