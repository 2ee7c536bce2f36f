#include "cuda/landing_marks.hpp"

#include <sys/mman.h>
#include <utility>

namespace coaccel::cuda {
namespace {

constexpr std::size_t page_bytes = 4096;
// Each in a line of its own, because the GPU writes to one while the next is looked at.
constexpr std::size_t apart = 64;

} // namespace

landing_marks::~landing_marks()
{
    if (page_)
        (void)::munmap(page_, page_bytes);
}

void landing_marks::map() noexcept
{
    void* const page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (api_.cuMemHostRegister(page, page_bytes, CU_MEMHOSTREGISTER_DEVICEMAP) != CUDA_SUCCESS) {
        (void)::munmap(page, page_bytes);
        return;
    }
    page_ = page;
    if (api_.cuMemHostGetDevicePointer(&device_, page_, 0) != CUDA_SUCCESS)
        destroy();
}

landing_marks::mark landing_marks::take() noexcept
{
    if (!page_ || taken_ == page_bytes / apart)
        return {};
    const std::size_t at = apart * taken_++;
    return {reinterpret_cast<std::uint32_t*>(static_cast<char*>(page_) + at), device_ + at};
}

void landing_marks::destroy() noexcept
{
    if (!page_)
        return;
    (void)api_.cuMemHostUnregister(page_);
    (void)::munmap(std::exchange(page_, nullptr), page_bytes);
}

} // namespace coaccel::cuda
