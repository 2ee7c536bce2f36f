#ifndef COACCEL_TEST_UNIT_CUDA_BLAS_RECORDER_HPP
#define COACCEL_TEST_UNIT_CUDA_BLAS_RECORDER_HPP

#include "cuda/blas/cublas_setup.hpp"
#include "support/fake_cuda.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

/// A cuBLAS on the fake driver that records its calls with their arguments, thread and modes. A few functions, which
/// the tests of handles need, also compute. Only one may exist in a process.
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

    /// An argument after the handle.
    struct argument {
        /// An integer or an enumerator.
        long long number = 0;
        const void* address = nullptr;
        /// The element at the address, if cuBLAS declares its type or it is a factor.
        std::complex<double> first{};
        /// What an array in host memory contains.
        std::vector<double> values{};
    };

    struct record {
        /// The name in the manual, without "_64"; a shorter name for the functions that compute.
        std::string function;
        std::thread::id thread{};
        std::int64_t incx = 0;
        cublasComputeType_t compute{};
        std::int64_t ld[3]{};
        /// For the functions that do not compute.
        std::vector<argument> arguments{};
        /// For the functions that do not compute.
        cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
    };

    explicit blas_recorder(fake_cuda& gpu) : gpu_(gpu)
    {
        self = this;
#define COACCEL_RECORD(function)                                                                                       \
    {                                                                                                                  \
        struct named {                                                                                                 \
            static const char* name()                                                                                  \
            {                                                                                                          \
                return COACCEL_CUDA_SYMBOL(function);                                                                  \
            }                                                                                                          \
        };                                                                                                             \
        api.function = recording<named>(api.function);                                                                 \
    }
        COACCEL_CUBLAS_FUNCTIONS(COACCEL_RECORD)
#undef COACCEL_RECORD
#if CUBLAS_VERSION >= 120500
        api.cublasGemmGroupedBatchedEx_64 = &gemm_grouped;
#endif
        recorded_gemm_ = api.cublasGemmEx_64;
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

    /// Records calls of gemm with all their arguments, as those of other functions that do not compute.
    void record_gemm() { api.cublasGemmEx_64 = recorded_gemm_; }

    /// The last call.
    record last_call() const
    {
        const std::scoped_lock lock(mutex_);
        return records_.back();
    }

    coaccel::cuda::cublas_api api;

private:
    // The pointers may be those of vectors on the device, which the thread of the fake GPU writes meanwhile. Their
    // content is not looked at then.
#define COACCEL_TEST_MAY_RACE __attribute__((no_sanitize_thread))
    COACCEL_TEST_MAY_RACE static argument described(const float* p) { return {0, p, p ? *p : 0}; }
    COACCEL_TEST_MAY_RACE static argument described(const double* p) { return {0, p, p ? *p : 0}; }
    static argument described(const void* p) { return {0, p}; }

    COACCEL_TEST_MAY_RACE static argument described(const cuComplex* p)
    {
        const double x = p ? p->x : 0;
        const double y = p ? p->y : 0;
        return {0, p, std::complex<double>(x, y)};
    }

    COACCEL_TEST_MAY_RACE static argument described(const cuDoubleComplex* p)
    {
        const double x = p ? p->x : 0;
        const double y = p ? p->y : 0;
        return {0, p, std::complex<double>(x, y)};
    }
#undef COACCEL_TEST_MAY_RACE

    template <class Number>
        requires(std::is_integral_v<Number> || std::is_enum_v<Number>)
    static argument described(Number n)
    {
        return {static_cast<long long>(n)};
    }

    static std::string manual_name(std::string symbol)
    {
        for (const std::string suffix : {"_64", "_v2"})
            if (symbol.ends_with(suffix))
                symbol.resize(symbol.size() - suffix.size());
        return symbol;
    }

    /// A function that records its call and computes nothing.
    template <class Named, class... Arguments>
    static auto recording(cublasStatus_t (*)(cublasHandle_t, Arguments...))
        -> cublasStatus_t (*)(cublasHandle_t, Arguments...)
    {
        return [](cublasHandle_t h, Arguments... arguments) {
            record made{.function = manual_name(Named::name()),
                        .arguments = {described(arguments)...},
                        .pointers = of(h).pointers};
            if (made.function.starts_with("cublasGemm") && made.pointers == CUBLAS_POINTER_MODE_HOST)
                read_factors(made);
            return run(h, made, [] {});
        };
    }

    /// The functions of products take factors of any type.
    static void read_factors(record& made)
    {
        auto& all = made.arguments;
        const bool strided = made.function == "cublasGemmStridedBatchedEx";
        const auto compute = static_cast<cublasComputeType_t>(all[all.size() - 2].number);
        const auto result = static_cast<cudaDataType>(all[strided ? 16 : 14].number);
        for (argument* const factor : {&all[5], &all[strided ? 14 : 12]})
            factor->first = value_at(factor->address, compute, result);
    }

    template <class T>
    static T load(const void* from)
    {
        T value;
        std::memcpy(&value, from, sizeof(value));
        return value;
    }

    static std::complex<double> value_at(const void* factor, cublasComputeType_t compute, cudaDataType result)
    {
        if (result == CUDA_C_32F)
            return load<std::complex<float>>(factor);
        if (result == CUDA_C_64F)
            return load<std::complex<double>>(factor);
        if (result == CUDA_R_32I)
            return load<std::int32_t>(factor);
        return is_double(compute) ? load<double>(factor) : load<float>(factor);
    }

    static bool is_double(cublasComputeType_t compute)
    {
        return compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    }

#if CUBLAS_VERSION >= 120500
    template <class Number>
    static argument array(const Number* first, std::int64_t count)
    {
        argument made{0, first};
        for (std::int64_t i = 0; i < count; ++i)
            made.values.push_back(static_cast<double>(first[i]));
        return made;
    }

    static argument factor_array(const void* first, std::int64_t count, cublasComputeType_t compute)
    {
        return is_double(compute) ? array(static_cast<const double*>(first), count)
                                  : array(static_cast<const float*>(first), count);
    }

    static cublasStatus_t gemm_grouped(cublasHandle_t h, const cublasOperation_t trans_a[],
                                       const cublasOperation_t trans_b[], const std::int64_t m[],
                                       const std::int64_t n[], const std::int64_t k[], const void* alpha,
                                       const void* const a[], cudaDataType_t type_a, const std::int64_t lda[],
                                       const void* const b[], cudaDataType_t type_b, const std::int64_t ldb[],
                                       const void* beta, void* const c[], cudaDataType_t type_c,
                                       const std::int64_t ldc[], std::int64_t groups, const std::int64_t sizes[],
                                       cublasComputeType_t compute)
    {
        return run(h,
                   {.function = "cublasGemmGroupedBatchedEx",
                    .arguments = {array(trans_a, groups), array(trans_b, groups), array(m, groups), array(n, groups),
                                  array(k, groups), factor_array(alpha, groups, compute),
                                  described(static_cast<const void*>(a)), described(type_a), array(lda, groups),
                                  described(static_cast<const void*>(b)), described(type_b), array(ldb, groups),
                                  factor_array(beta, groups, compute), described(static_cast<const void*>(c)),
                                  described(type_c), array(ldc, groups), described(groups), array(sizes, groups),
                                  described(compute)},
                    .pointers = of(h).pointers},
                   [] {});
    }
#endif

    template <class Named, class Function>
    static Function recording(Function) noexcept
    {
        return nullptr;
    }

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
    decltype(api.cublasGemmEx_64) recorded_gemm_ = nullptr;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<handle>> handles_;
    std::vector<record> records_;
    std::map<std::string, cublasStatus_t> failures_;
};

} // namespace test

#endif
