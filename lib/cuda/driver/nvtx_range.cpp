#include "cuda/driver/nvtx_range.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>

namespace coaccel::cuda {
namespace {

nvtxDomainHandle_t nvtx_domain() noexcept
{
    static const nvtxDomainHandle_t made = nvtxDomainCreateA("coaccel");
    return made;
}

} // namespace

void nvtx_range::push(const char* name) noexcept
{
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    (void)nvtxDomainRangePushEx(nvtx_domain(), &attributes);
}

void nvtx_range::pop() noexcept
{
    (void)nvtxDomainRangePop(nvtx_domain());
}

} // namespace coaccel::cuda

#else

namespace coaccel::cuda {

void nvtx_range::push(const char*) noexcept {}
void nvtx_range::pop() noexcept {}

} // namespace coaccel::cuda

#endif
