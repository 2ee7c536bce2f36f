#ifndef COACCEL_BENCH_CUDA_RAW_HPP
#define COACCEL_BENCH_CUDA_RAW_HPP

#include "cuda/blas/cublas_api.hpp"
#include "cuda/driver/driver_api.hpp"
#include "failure.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace coaccel::bench {

/// The same GPU through the driver API, as the reference. It uses the primary context, as coaccel does: two contexts on
/// one GPU would take turns. With the context's default flags, a wait spins if the machine has more processors than
/// contexts.
///
/// All work happens inside `enter`, so that coaccel finds the thread without a current context, as in any program.
class raw_gpu {
public:
    class [[nodiscard]] scope {
    public:
        explicit scope(const raw_gpu& raw) : raw_(raw)
        {
            raw_.check(raw_.api().cuCtxPushCurrent(raw_.context_), "cuCtxPushCurrent");
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

        ~scope()
        {
            CUcontext popped = nullptr;
            (void)raw_.api().cuCtxPopCurrent(&popped);
        }

    private:
        const raw_gpu& raw_;
    };

    explicit raw_gpu(const cuda::driver_api& api);
    raw_gpu(const raw_gpu&) = delete;
    raw_gpu& operator=(const raw_gpu&) = delete;
    ~raw_gpu();

    const cuda::driver_api& api() const noexcept { return *api_; }
    CUdevice device() const noexcept { return device_; }
    CUcontext context() const noexcept { return context_; }
    CUstream stream() const noexcept { return stream_; }
    scope enter() const { return scope(*this); }

    void check(CUresult r, const char* what) const
    {
        if (r != CUDA_SUCCESS) [[unlikely]]
            fail(r, what);
    }

    /// Enqueues an empty kernel with one thread.
    void launch() const
    {
        check(api_->cuLaunchKernel(empty_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), "cuLaunchKernel");
    }

    void synchronize() const { check(api_->cuStreamSynchronize(stream_), "cuStreamSynchronize"); }

    /// The seconds of each launch and the wait for it, without the first `skip`.
    void round_trips(int skip, int count, std::vector<double>& times) const;

    /// The seconds per launch, for many launches with one wait.
    double enqueue_time(int count = 20000) const;

    // Not in the function table of coaccel, which does not use them.
    decltype(&::cuMemAlloc) allocate = nullptr;
    decltype(&::cuMemcpyHtoD) copy_in = nullptr;
    decltype(&::cuMemcpyDtoH) copy_out = nullptr;
    decltype(&::cuStreamWriteValue32) write_value = nullptr;

private:
    [[noreturn]] void fail(CUresult r, const char* what) const;

    const cuda::driver_api* api_;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    CUstream stream_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction empty_ = nullptr;
};

/// Device memory of the reference context.
class raw_memory {
public:
    raw_memory(const raw_gpu& raw, std::size_t bytes);
    raw_memory(const raw_memory&) = delete;
    raw_memory& operator=(const raw_memory&) = delete;
    ~raw_memory();

    CUdeviceptr address() const noexcept { return address_; }
    void* pointer() const noexcept { return reinterpret_cast<void*>(address_); }

private:
    const raw_gpu& raw_;
    CUdeviceptr address_ = 0;
};

/// Page-locked host memory whose pages are resident.
class raw_pinned {
public:
    raw_pinned(const raw_gpu& raw, std::size_t floats);
    raw_pinned(const raw_pinned&) = delete;
    raw_pinned& operator=(const raw_pinned&) = delete;
    ~raw_pinned();

    std::span<float> span() const noexcept { return {static_cast<float*>(memory_), bytes_ / sizeof(float)}; }

private:
    const raw_gpu& raw_;
    std::size_t bytes_;
    void* memory_;
};

/// A memory pool that does not release freed memory.
class raw_pool {
public:
    explicit raw_pool(const raw_gpu& raw);
    raw_pool(const raw_pool&) = delete;
    raw_pool& operator=(const raw_pool&) = delete;
    ~raw_pool();

    CUmemoryPool native() const noexcept { return pool_; }

    CUdeviceptr allocate(std::size_t bytes) const
    {
        CUdeviceptr made = 0;
        raw_.check(raw_.api().cuMemAllocFromPoolAsync(&made, bytes, pool_, raw_.stream()), "cuMemAllocFromPoolAsync");
        return made;
    }

    void release(CUdeviceptr p) const { raw_.check(raw_.api().cuMemFreeAsync(p, raw_.stream()), "cuMemFreeAsync"); }

private:
    const raw_gpu& raw_;
    CUmemoryPool pool_ = nullptr;
};

/// cuBLAS on the reference context's stream.
class raw_blas {
public:
    explicit raw_blas(const raw_gpu& raw);
    raw_blas(const raw_blas&) = delete;
    raw_blas& operator=(const raw_blas&) = delete;
    ~raw_blas();

    /// c = a * b, square matrices of f32.
    void multiply(std::int64_t n, const raw_memory& a, const raw_memory& b, const raw_memory& c) const;

    const cuda::cublas_api& api() const noexcept { return *api_; }
    cublasHandle_t handle() const noexcept { return handle_; }
    void check(cublasStatus_t s, const char* what) const;

private:
    const raw_gpu& raw_;
    const cuda::cublas_api* api_;
    cublasHandle_t handle_ = nullptr;
};

} // namespace coaccel::bench

#endif
