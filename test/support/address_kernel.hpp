#ifndef COACCEL_TEST_SUPPORT_ADDRESS_KERNEL_HPP
#define COACCEL_TEST_SUPPORT_ADDRESS_KERNEL_HPP

#include "cuda/blas/address_kernel.hpp"
#include "support/fake_cuda.hpp"

#include <algorithm>
#include <cstdint>

namespace test {

// The kernels of lib/cuda/blas/address_kernel.cpp, thread by thread.

inline void fill_addresses(fake_cuda& gpu, const fake_cuda::launch& l, void** arguments)
{
    auto* const to = *static_cast<std::uint64_t**>(arguments[0]);
    const auto count = *static_cast<std::uint64_t*>(arguments[1]);
    const auto& from = *static_cast<coaccel::cuda::address_sequences*>(arguments[2]);
    if (!gpu.touch(to, l.grid[1] * count * sizeof(*to)))
        return;
    const std::uint64_t all = std::uint64_t(l.grid[0]) * l.block[0];
    for (std::uint64_t table = 0; table < l.grid[1]; ++table)
        for (std::uint64_t thread = 0; thread < all; ++thread)
            for (std::uint64_t i = thread; i < count; i += all)
                to[table * count + i] = from[table].first + i * from[table].step;
}

inline void store_addresses(fake_cuda& gpu, const fake_cuda::launch& l, void** arguments)
{
    auto* const to = *static_cast<std::uint64_t**>(arguments[0]);
    const auto count = *static_cast<std::uint32_t*>(arguments[1]);
    const auto& from = *static_cast<coaccel::cuda::address_list*>(arguments[2]);
    // The kernel has no loop.
    if (count > from.size() || count > l.block[0] || l.grid[0] != 1)
        gpu.complain("coaccel_store_addresses: too many addresses");
    else if (gpu.touch(to, count * sizeof(*to)))
        std::copy_n(from.begin(), count, to);
}

inline void limit_pivots(fake_cuda& gpu, const fake_cuda::launch& l, void** arguments)
{
    auto* const to = *static_cast<std::int32_t**>(arguments[0]);
    const auto* const from = *static_cast<const std::int32_t**>(arguments[1]);
    const auto count = *static_cast<std::uint64_t*>(arguments[2]);
    const auto most = *static_cast<std::int32_t*>(arguments[3]);
    if (!gpu.touch(to, count * sizeof(*to)) || !gpu.touch(from, count * sizeof(*from)))
        return;
    const std::uint64_t all = std::uint64_t(l.grid[0]) * l.block[0];
    for (std::uint64_t thread = 0; thread < all; ++thread)
        for (std::uint64_t i = thread; i < count; i += all)
            to[i] = std::min(std::max(from[i], 1), most);
}

/// Adds the kernels to the modules of the fake driver.
inline void add_address_kernel(fake_cuda& gpu)
{
    gpu.add_kernel("coaccel_limit_pivots",
                   [&gpu](const fake_cuda::launch& l, void** arguments) { limit_pivots(gpu, l, arguments); },
                   {sizeof(std::int32_t*), sizeof(std::int32_t*), sizeof(std::uint64_t), sizeof(std::int32_t)});
    gpu.add_kernel("coaccel_store_addresses",
                   [&gpu](const fake_cuda::launch& l, void** arguments) { store_addresses(gpu, l, arguments); },
                   {sizeof(std::uint64_t*), sizeof(std::uint32_t), sizeof(coaccel::cuda::address_list)});
    gpu.add_kernel("coaccel_fill_addresses",
                   [&gpu](const fake_cuda::launch& l, void** arguments) { fill_addresses(gpu, l, arguments); },
                   {sizeof(std::uint64_t*), sizeof(std::uint64_t), sizeof(coaccel::cuda::address_sequences)});
}

} // namespace test

#endif
