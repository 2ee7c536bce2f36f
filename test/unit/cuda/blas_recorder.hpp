#ifndef COACCEL_TEST_UNIT_CUDA_BLAS_RECORDER_HPP
#define COACCEL_TEST_UNIT_CUDA_BLAS_RECORDER_HPP

#include "cuda/blas/cublas_api.hpp"
#include "support/fake_cuda.hpp"

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace test {

/// A cuBLAS on the fake driver that records its calls with their thread and modes. It has the functions that the tests
/// of the ops need. Only one may exist in a process.
class blas_recorder {
public:
    struct handle {
        CUstream stream = nullptr;
        void* workspace = nullptr;
        std::size_t workspace_bytes = 0;
        cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
        cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
        int math = 0;
        bool alive = true;
    };

    struct record {
        std::string function;
        std::thread::id thread{};
        std::int64_t incx = 0;
        cublasComputeType_t compute{};
        std::int64_t ld[3]{};
    };

    explicit blas_recorder(fake_cuda& gpu) : gpu_(gpu)
    {
        self = this;
        api.cublasCreate = &create;
        api.cublasDestroy = &destroy;
        api.cublasSetStream = &set_stream;
        api.cublasSetWorkspace = &set_workspace;
        api.cublasSetPointerMode = &set_pointer_mode;
        api.cublasSetAtomicsMode = &set_atomics_mode;
        api.cublasSetMathMode = &set_math_mode;
        api.cublasSaxpy_64 = &axpy;
        api.cublasSscal_64 = &scal;
        api.cublasScopy_64 = &copy;
        api.cublasSdot_64 = &dot;
        api.cublasIsamax_64 = &iamax;
        api.cublasGemmEx_64 = &gemm;
    }

    blas_recorder(const blas_recorder&) = delete;
    blas_recorder& operator=(const blas_recorder&) = delete;
    ~blas_recorder() { self = nullptr; }

    /// Makes the next call of the function fail.
    void fail(const std::string& function, cublasStatus_t s)
    {
        const std::scoped_lock lock(mutex_);
        failures_[function] = s;
    }

    std::vector<record> calls(const std::string& function) const
    {
        const std::scoped_lock lock(mutex_);
        std::vector<record> found;
        for (const auto& r : records_)
            if (r.function == function)
                found.push_back(r);
        return found;
    }

    std::size_t alive() const
    {
        const std::scoped_lock lock(mutex_);
        std::size_t count = 0;
        for (const auto& h : handles_)
            count += h->alive;
        return count;
    }

    const handle& last() const { return *handles_.back(); }

    coaccel::cuda::cublas_api api;

private:
    static inline blas_recorder* self = nullptr;

    static cublasStatus_t note(record r)
    {
        const std::scoped_lock lock(self->mutex_);
        r.thread = std::this_thread::get_id();
        self->records_.push_back(r);
        const auto found = self->failures_.find(r.function);
        if (found == self->failures_.end())
            return CUBLAS_STATUS_SUCCESS;
        const auto status = found->second;
        self->failures_.erase(found);
        return status;
    }

    static handle& of(cublasHandle_t h) { return *reinterpret_cast<handle*>(h); }

    template <class Work>
    static cublasStatus_t run(cublasHandle_t h, const record& r, Work work)
    {
        if (const auto status = note(r); status != CUBLAS_STATUS_SUCCESS)
            return status;
        self->gpu_.enqueue(of(h).stream, std::move(work));
        return CUBLAS_STATUS_SUCCESS;
    }

    static cublasStatus_t create(cublasHandle_t* h)
    {
        if (const auto status = note({"create"}); status != CUBLAS_STATUS_SUCCESS)
            return status;
        const std::scoped_lock lock(self->mutex_);
        self->handles_.push_back(std::make_unique<handle>());
        *h = reinterpret_cast<cublasHandle_t>(self->handles_.back().get());
        return CUBLAS_STATUS_SUCCESS;
    }

    static cublasStatus_t destroy(cublasHandle_t h)
    {
        of(h).alive = false;
        return note({"destroy"});
    }

    // Resets the workspace, as the real function does.
    static cublasStatus_t set_stream(cublasHandle_t h, cudaStream_t s)
    {
        of(h).stream = s;
        of(h).workspace = nullptr;
        return note({"set_stream"});
    }

    static cublasStatus_t set_workspace(cublasHandle_t h, void* workspace, std::size_t bytes)
    {
        of(h).workspace = workspace;
        of(h).workspace_bytes = bytes;
        return note({"set_workspace"});
    }

    static cublasStatus_t set_pointer_mode(cublasHandle_t h, cublasPointerMode_t mode)
    {
        of(h).pointers = mode;
        return note({"set_pointer_mode"});
    }

    static cublasStatus_t set_atomics_mode(cublasHandle_t h, cublasAtomicsMode_t mode)
    {
        of(h).atomics = mode;
        return note({"set_atomics_mode"});
    }

    static cublasStatus_t set_math_mode(cublasHandle_t h, cublasMath_t mode)
    {
        of(h).math = mode;
        return note({"set_math_mode"});
    }

    /// As in BLAS, a negative increment runs from the end.
    static std::int64_t place(std::int64_t i, std::int64_t n, std::int64_t inc)
    {
        return inc < 0 ? (i - n + 1) * inc : i * inc;
    }

    static cublasStatus_t axpy(cublasHandle_t h, std::int64_t n, const float* alpha, const float* x, std::int64_t incx,
                               float* y, std::int64_t incy)
    {
        return run(h, {.function = "axpy", .incx = incx}, [=, a = *alpha] {
            for (std::int64_t i = 0; i < n; ++i)
                y[place(i, n, incy)] += a * x[place(i, n, incx)];
        });
    }

    static cublasStatus_t scal(cublasHandle_t h, std::int64_t n, const float* alpha, float* x, std::int64_t incx)
    {
        return run(h, {.function = "scal", .incx = incx}, [=, a = *alpha] {
            for (std::int64_t i = 0; i < n && incx > 0; ++i)
                x[i * incx] *= a;
        });
    }

    static cublasStatus_t copy(cublasHandle_t h, std::int64_t n, const float* x, std::int64_t incx, float* y,
                               std::int64_t incy)
    {
        return run(h, {.function = "copy", .incx = incx}, [=] {
            for (std::int64_t i = 0; i < n; ++i)
                y[place(i, n, incy)] = x[place(i, n, incx)];
        });
    }

    // In host pointer mode this would wait for the device.
    static cublasStatus_t dot(cublasHandle_t h, std::int64_t n, const float* x, std::int64_t incx, const float* y,
                              std::int64_t incy, float* result)
    {
        if (of(h).pointers != CUBLAS_POINTER_MODE_DEVICE)
            return CUBLAS_STATUS_MAPPING_ERROR;
        return run(h, {.function = "dot", .incx = incx}, [=] {
            float sum = 0;
            for (std::int64_t i = 0; i < n; ++i)
                sum += x[place(i, n, incx)] * y[place(i, n, incy)];
            *result = sum;
        });
    }

    static cublasStatus_t iamax(cublasHandle_t h, std::int64_t n, const float* x, std::int64_t incx,
                                std::int64_t* result)
    {
        if (of(h).pointers != CUBLAS_POINTER_MODE_DEVICE)
            return CUBLAS_STATUS_MAPPING_ERROR;
        return run(h, {.function = "iamax", .incx = incx}, [=] {
            std::int64_t at = 0;
            for (std::int64_t i = 1; i < n && incx > 0; ++i)
                if (std::abs(x[i * incx]) > std::abs(x[at * incx]))
                    at = i;
            *result = incx > 0 ? at + 1 : 0;
        });
    }

    static cublasStatus_t gemm(cublasHandle_t h, cublasOperation_t, cublasOperation_t, std::int64_t, std::int64_t,
                               std::int64_t, const void*, const void*, cudaDataType, std::int64_t lda, const void*,
                               cudaDataType, std::int64_t ldb, const void*, void*, cudaDataType, std::int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t)
    {
        return run(h, {.function = "gemm", .compute = compute, .ld = {lda, ldb, ldc}}, [] {});
    }

    fake_cuda& gpu_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<handle>> handles_;
    std::vector<record> records_;
    std::map<std::string, cublasStatus_t> failures_;
};

} // namespace test

#endif
