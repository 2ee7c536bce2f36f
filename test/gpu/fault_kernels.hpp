#ifndef COACCEL_TEST_DEVICE_FAULT_KERNELS_HPP
#define COACCEL_TEST_DEVICE_FAULT_KERNELS_HPP

namespace test {

/// Kernels that end a context, a slow one, and a harmless one.
inline constexpr const char* fault_kernels = R"(
extern "C" __global__ void spin(unsigned long long clocks)
{
    const unsigned long long start = clock64();
    while (clock64() - start < clocks) {}
}
extern "C" __global__ void illegal_address(float* p)
{
    p[1ull << 44] = 1.0f;
}
extern "C" __global__ void trap(float*)
{
    asm volatile("trap;");
}
extern "C" __global__ void misaligned(float* p)
{
    *reinterpret_cast<unsigned*>(reinterpret_cast<char*>(p) + 1) = 1;
}
extern "C" __global__ void touch(float* p)
{
    p[threadIdx.x] += 1.0f;
}
)";

} // namespace test

#endif
