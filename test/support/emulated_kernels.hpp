#ifndef COACCEL_TEST_SUPPORT_EMULATED_KERNELS_HPP
#define COACCEL_TEST_SUPPORT_EMULATED_KERNELS_HPP

#include "prim/histogram_bins.hpp"
#include "prim/ordering.hpp"
#include "prim/reductions.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

// The source of the CUDA kernels of `prim`, compiled as C++: its arithmetic and its indices can be tested without a
// GPU. The blocks of a grid run one after another.

#define __device__
#define __shared__ static

namespace coaccel_prim {

struct emulated_index {
    unsigned x = 0;
};

inline thread_local emulated_index threadIdx;
inline thread_local emulated_index blockIdx;
inline thread_local emulated_index blockDim;
inline thread_local emulated_index gridDim;
inline std::barrier<>* emulated_barrier = nullptr;
/// Of the threads of each warp.
inline std::deque<std::barrier<>> emulated_warps;

inline void __syncthreads()
{
    emulated_barrier->arrive_and_wait();
}

inline void wait_for_warp()
{
    emulated_warps[threadIdx.x / 32].arrive_and_wait();
}

inline void atomicMax(u64* to, u64 value)
{
    std::atomic_ref<u64> all(*to);
    u64 seen = all.load();
    while (seen < value && !all.compare_exchange_weak(seen, value)) {
    }
}

template <class T>
T atomicAdd(T* to, T value)
{
    return std::atomic_ref<T>(*to).fetch_add(value);
}

inline void atomicOr(u32* to, u32 bits)
{
    std::atomic_ref<u32>(*to).fetch_or(bits);
}

template <class Word>
void publish(Word* to, Word value)
{
    std::atomic_ref<Word>(*to).store(value);
}

template <class Word>
Word read_again(const Word* from)
{
    return std::atomic_ref<Word>(*const_cast<Word*>(from)).load();
}

/// All threads of the warp call it together.
inline u32 threads_with_same(u64 value)
{
    static std::array<u64, 256> all;
    all[threadIdx.x] = value;
    wait_for_warp();
    u32 same = 0;
    const unsigned first = threadIdx.x / 32 * 32;
    for (unsigned i = first; i < first + 32; ++i)
        same |= (all[i] == value ? 1u : 0u) << (i - first);
    wait_for_warp();
    return same;
}

/// All threads of the warp call it together.
template <class V>
V value_of(V value, u32 thread)
{
    static std::array<V, 256> all;
    all[threadIdx.x] = value;
    wait_for_warp();
    const V other = all[threadIdx.x / 32 * 32 + thread];
    wait_for_warp();
    return other;
}

/// All threads of the warp call it together.
inline u32 threads_where(bool condition)
{
    const u32 same = threads_with_same(condition ? 1u : 0u);
    return condition ? same : ~same;
}

inline u32 bits_in(u32 x)
{
    return static_cast<u32>(std::popcount(x));
}

inline u32 bit_length(u32 x)
{
    return static_cast<u32>(std::bit_width(x));
}

inline u32 bits_of(float x)
{
    return std::bit_cast<u32>(x);
}

inline u64 bits_of(double x)
{
    return std::bit_cast<u64>(x);
}

inline float float_of(u32 bits)
{
    return std::bit_cast<float>(bits);
}

} // namespace coaccel_prim

// clang-format off: in this order.
#include "cuda/prim/kernels/types.cuh"
#include "cuda/prim/kernels/elementwise.cuh"
#include "cuda/prim/kernels/rows.cuh"
#include "cuda/prim/kernels/reduce.cuh"
#include "cuda/prim/kernels/scan.cuh"
#include "cuda/prim/kernels/move.cuh"
#include "cuda/prim/kernels/order.cuh"
#include "cuda/prim/kernels/top_k.cuh"
#include "cuda/prim/kernels/sort.cuh"
#include "cuda/prim/kernels/compact.cuh"
#include "cuda/prim/kernels/histogram.cuh"
// clang-format on

#undef __device__
#undef __shared__

namespace test {

/// Runs a kernel whose threads do not wait for each other: one after another.
template <class Kernel>
void emulate(unsigned blocks, unsigned threads, const Kernel& kernel)
{
    using namespace coaccel_prim;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            kernel();
}

/// Runs a kernel with __syncthreads: the threads of a block are threads of the CPU.
template <class Kernel>
void emulate_together(unsigned blocks, unsigned threads, const Kernel& kernel)
{
    using namespace coaccel_prim;
    std::barrier<> together(threads);
    emulated_barrier = &together;
    for (unsigned first = 0; first < threads; first += 32)
        emulated_warps.emplace_back(std::min(threads - first, 32u));
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            gridDim.x = blocks;
            blockDim.x = threads;
            threadIdx.x = t;
            for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
                kernel();
                together.arrive_and_wait();
            }
        });
    for (auto& t : all)
        t.join();
    emulated_barrier = nullptr;
    emulated_warps.clear();
}

} // namespace test

#endif
