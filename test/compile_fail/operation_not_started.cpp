// Discarding an operation that was never started is an error.
// expect: this operation has not been started: co_await it, or pass a completion token such as
// expect: -Wunused-result|nodiscard
#include <coaccel/device/device.hpp>
#include <coaccel/ops/memory.hpp>

#pragma GCC diagnostic error "-Wunused-result"

void fill(const coaccel::device& gpu, coaccel::ref<float> x)
{
    gpu.async_exec(coaccel::memory::fill<float>{x, 1.0f});
}
