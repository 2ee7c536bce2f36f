#include "support/fake_cublas.hpp"

#include <boost/assert.hpp>

#include <mutex>
#include <type_traits>

namespace test {

struct fake_cublas::state {
    struct handle {
        CUstream stream = nullptr;
        cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
        void* workspace = nullptr;
    };

    struct plan {
        cublasStatus_t status;
        int countdown;
    };

    fake_cuda& driver;
    coaccel::cuda::cublas_api table{};
    std::mutex mutex{};
    std::uintptr_t next_handle = 0xb1a50000;
    std::map<cublasHandle_t, handle> handles{};
    std::map<std::string, std::vector<plan>, std::less<>> plans{};
    std::map<std::string, int, std::less<>> counts{};

    /// The common start of every call.
    cublasStatus_t begin(std::string_view function)
    {
        ++counts[std::string(function)];
        cublasStatus_t planned = CUBLAS_STATUS_SUCCESS;
        auto& mine = plans[std::string(function)];
        for (auto& p : mine)
            if (--p.countdown == 0)
                planned = p.status;
        std::erase_if(mine, [](const plan& p) { return p.countdown <= 0; });
        if (planned != CUBLAS_STATUS_SUCCESS)
            return planned;
        return driver.library_call(function) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR;
    }

    template <class Body>
    cublasStatus_t with(std::string_view function, cublasHandle_t h, Body body)
    {
        const std::scoped_lock lock(mutex);
        if (const auto status = begin(function); status != CUBLAS_STATUS_SUCCESS)
            return status;
        const auto found = handles.find(h);
        if (found == handles.end()) {
            driver.complain(std::string(function).append(": unknown handle"));
            return CUBLAS_STATUS_NOT_INITIALIZED;
        }
        if constexpr (std::is_void_v<decltype(body(found->second))>)
            body(found->second);
        else if (body(found->second) != CUDA_SUCCESS)
            return CUBLAS_STATUS_EXECUTION_FAILED;
        return CUBLAS_STATUS_SUCCESS;
    }
};

namespace {

fake_cublas::state* current = nullptr;

template <class... A>
auto not_there(cublasStatus_t (*)(A...))
{
    return +[](A...) { return CUBLAS_STATUS_NOT_SUPPORTED; };
}

auto not_there(const char* (*f)(cublasStatus_t))
{
    return f;
}

std::size_t bytes_of(std::int64_t n, std::int64_t inc)
{
    return static_cast<std::size_t>((n - 1) * inc + 1) * sizeof(float);
}

/// A factor in host memory is read by the call, one in device memory by its work.
class factor {
public:
    factor(const fake_cublas::state::handle& h, const float* at)
        : address_(at), on_device_(h.mode == CUBLAS_POINTER_MODE_DEVICE), value_(on_device_ ? 0 : *at)
    {}

    /// Null: the memory cannot be read.
    const float* get(fake_cuda& d) const
    {
        if (!on_device_)
            return &value_;
        return d.touch(address_, sizeof(float)) ? address_ : nullptr;
    }

private:
    const float* address_;
    bool on_device_;
    float value_;
};

cublasStatus_t create(cublasHandle_t* made)
{
    const std::scoped_lock lock(current->mutex);
    if (const auto status = current->begin("cublasCreate"); status != CUBLAS_STATUS_SUCCESS)
        return status;
    *made = reinterpret_cast<cublasHandle_t>(current->next_handle += 16);
    current->handles.emplace(*made, fake_cublas::state::handle{});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy(cublasHandle_t h)
{
    const auto status = current->with("cublasDestroy", h, [](auto&) {});
    const std::scoped_lock lock(current->mutex);
    current->handles.erase(h);
    return status;
}

cublasStatus_t set_stream(cublasHandle_t h, cudaStream_t s)
{
    return current->with("cublasSetStream", h, [&](auto& on) {
        on.stream = reinterpret_cast<CUstream>(s);
        on.workspace = nullptr;
    });
}

cublasStatus_t set_workspace(cublasHandle_t h, void* p, std::size_t)
{
    return current->with("cublasSetWorkspace", h, [&](auto& on) { on.workspace = p; });
}

cublasStatus_t set_pointer_mode(cublasHandle_t h, cublasPointerMode_t mode)
{
    return current->with("cublasSetPointerMode", h, [&](auto& on) { on.mode = mode; });
}

cublasStatus_t set_math_mode(cublasHandle_t h, cublasMath_t)
{
    return current->with("cublasSetMathMode", h, [](auto&) {});
}

cublasStatus_t set_atomics_mode(cublasHandle_t h, cublasAtomicsMode_t)
{
    return current->with("cublasSetAtomicsMode", h, [](auto&) {});
}

cublasStatus_t saxpy(cublasHandle_t h, std::int64_t n, const float* alpha, const float* x, std::int64_t incx, float* y,
                     std::int64_t incy)
{
    return current->with("cublasSaxpy", h, [&](auto& on) {
        return current->driver.enqueue(on.stream, [=, &d = current->driver, by = factor(on, alpha)] {
            const float* const a = by.get(d);
            if (a && d.touch(x, bytes_of(n, incx)) && d.touch(y, bytes_of(n, incy)))
                for (std::int64_t i = 0; i < n; ++i)
                    y[i * incy] += *a * x[i * incx];
        });
    });
}

cublasStatus_t sscal(cublasHandle_t h, std::int64_t n, const float* alpha, float* x, std::int64_t incx)
{
    return current->with("cublasSscal", h, [&](auto& on) {
        return current->driver.enqueue(on.stream, [=, &d = current->driver, by = factor(on, alpha)] {
            const float* const a = by.get(d);
            if (a && d.touch(x, bytes_of(n, incx)))
                for (std::int64_t i = 0; i < n; ++i)
                    x[i * incx] *= *a;
        });
    });
}

/// Packed and not transposed only.
cublasStatus_t sgemv(cublasHandle_t h, cublasOperation_t trans, std::int64_t m, std::int64_t n, const float* alpha,
                     const float* a, std::int64_t lda, const float* x, std::int64_t incx, const float* beta, float* y,
                     std::int64_t incy)
{
    if (trans != CUBLAS_OP_N || lda != m || incx != 1 || incy != 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return current->with("cublasSgemv", h, [&](auto& on) {
        return current->driver.enqueue(on.stream,
                                       [=, &d = current->driver, first = factor(on, alpha), second = factor(on, beta)] {
                                           const float* const by = first.get(d);
                                           const float* const keep = second.get(d);
                                           if (!by || !keep || !d.touch(a, bytes_of(m * n, 1)) ||
                                               !d.touch(x, bytes_of(n, 1)) || !d.touch(y, bytes_of(m, 1)))
                                               return;
                                           for (std::int64_t i = 0; i < m; ++i) {
                                               float sum = 0;
                                               for (std::int64_t k = 0; k < n; ++k)
                                                   sum += a[i + k * m] * x[k];
                                               y[i] = *by * sum + (*keep == 0 ? 0 : *keep * y[i]);
                                           }
                                       });
    });
}

/// Floats, packed and not transposed only.
cublasStatus_t gemm_batched(cublasHandle_t h, cublasOperation_t trans_a, cublasOperation_t trans_b, std::int64_t m,
                            std::int64_t n, std::int64_t k, const void* alpha, const void* const a[],
                            cudaDataType_t type_a, std::int64_t lda, const void* const b[], cudaDataType_t type_b,
                            std::int64_t ldb, const void* beta, void* const c[], cudaDataType_t type_c,
                            std::int64_t ldc, std::int64_t batch, cublasComputeType_t, cublasGemmAlgo_t)
{
    if (trans_a != CUBLAS_OP_N || trans_b != CUBLAS_OP_N || lda != m || ldb != k || ldc != m)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (type_a != CUDA_R_32F || type_b != CUDA_R_32F || type_c != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return current->with("cublasGemmBatchedEx", h, [&](auto& on) {
        return current->driver.enqueue(on.stream, [=, &d = current->driver,
                                                   first = factor(on, static_cast<const float*>(alpha)),
                                                   second = factor(on, static_cast<const float*>(beta))] {
            const float* const by = first.get(d);
            const float* const keep = second.get(d);
            const auto count = static_cast<std::size_t>(batch);
            if (!by || !keep || !d.touch(a, count * sizeof(*a)) || !d.touch(b, count * sizeof(*b)) ||
                !d.touch(c, count * sizeof(*c)))
                return;
            for (std::size_t i = 0; i < count; ++i) {
                if (!d.touch(a[i], bytes_of(m * k, 1)) || !d.touch(b[i], bytes_of(k * n, 1)) ||
                    !d.touch(c[i], bytes_of(m * n, 1)))
                    return;
                for (std::int64_t at = 0; at < m * n; ++at) {
                    float sum = 0;
                    for (std::int64_t l = 0; l < k; ++l)
                        sum += static_cast<const float*>(a[i])[at % m + l * m] *
                               static_cast<const float*>(b[i])[l + at / m * k];
                    float& to = static_cast<float*>(c[i])[at];
                    to = *by * sum + (*keep == 0 ? 0 : *keep * to);
                }
            }
        });
    });
}

/// Matrices of one element only.
cublasStatus_t strsm_batched(cublasHandle_t h, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t,
                             std::int64_t m, std::int64_t n, const float* alpha, const float* const a[], std::int64_t,
                             float* const b[], std::int64_t, std::int64_t batch)
{
    if (m != 1 || n != 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return current->with("cublasStrsmBatched", h, [&](auto& on) {
        return current->driver.enqueue(on.stream, [=, &d = current->driver, by = factor(on, alpha)] {
            const float* const times = by.get(d);
            const auto count = static_cast<std::size_t>(batch);
            if (!times || !d.touch(a, count * sizeof(*a)) || !d.touch(b, count * sizeof(*b)))
                return;
            for (std::size_t i = 0; i < count; ++i)
                if (d.touch(a[i], sizeof(float)) && d.touch(b[i], sizeof(float)))
                    *b[i] *= *times / *a[i];
        });
    });
}

/// Matrices of one element only, with pivots that are rows of the matrix, as cuBLAS requires.
cublasStatus_t sgetrs_batched(cublasHandle_t h, cublasOperation_t, int n, int nrhs, const float* const a[], int,
                              const int* pivots, float* const b[], int, int* info, int batch)
{
    if (n != 1 || nrhs != 1 || !pivots)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *info = 0;
    return current->with("cublasSgetrsBatched", h, [&](auto& on) {
        return current->driver.enqueue(on.stream, [=, &d = current->driver] {
            const auto count = static_cast<std::size_t>(batch);
            if (!d.touch(a, count * sizeof(*a)) || !d.touch(b, count * sizeof(*b)) ||
                !d.touch(pivots, count * sizeof(*pivots)))
                return;
            for (std::size_t i = 0; i < count; ++i) {
                if (pivots[i] != 1)
                    d.complain("cublasSgetrsBatched: pivot " + std::to_string(pivots[i]));
                if (d.touch(a[i], sizeof(float)) && d.touch(b[i], sizeof(float)))
                    *b[i] /= *a[i];
            }
        });
    });
}

cublasStatus_t scopy(cublasHandle_t h, std::int64_t n, const float* x, std::int64_t incx, float* y, std::int64_t incy)
{
    return current->with("cublasScopy", h, [&](auto& on) {
        return current->driver.enqueue(on.stream, [=, &d = current->driver] {
            if (d.touch(x, bytes_of(n, incx)) && d.touch(y, bytes_of(n, incy)))
                for (std::int64_t i = 0; i < n; ++i)
                    y[i * incy] = x[i * incx];
        });
    });
}

cublasStatus_t sdot(cublasHandle_t h, std::int64_t n, const float* x, std::int64_t incx, const float* y,
                    std::int64_t incy, float* result)
{
    return current->with("cublasSdot", h, [&](auto& on) {
        if (on.mode != CUBLAS_POINTER_MODE_DEVICE)
            current->driver.complain("cublasSdot would wait for its result");
        return current->driver.enqueue(on.stream, [=, &d = current->driver] {
            if (!d.touch(x, bytes_of(n, incx)) || !d.touch(y, bytes_of(n, incy)) || !d.touch(result, sizeof *result))
                return;
            float sum = 0;
            for (std::int64_t i = 0; i < n; ++i)
                sum += x[i * incx] * y[i * incy];
            *result = sum;
        });
    });
}

} // namespace

fake_cublas::fake_cublas(fake_cuda& driver) : state_(new state{.driver = driver})
{
    BOOST_ASSERT_MSG(!current, "one fake cuBLAS at a time");
    current = state_.get();
    auto& t = state_->table;
#define COACCEL_FAKE_UNSUPPORTED(function) t.function = not_there(t.function);
    COACCEL_CUBLAS_FUNCTIONS(COACCEL_FAKE_UNSUPPORTED)
    COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(COACCEL_FAKE_UNSUPPORTED)
#undef COACCEL_FAKE_UNSUPPORTED
    t.cublasGetStatusString = [](cublasStatus_t) { return "an error of the fake cuBLAS's"; };
    t.cublasCreate = &create;
    t.cublasDestroy = &destroy;
    t.cublasSetStream = &set_stream;
    t.cublasSetWorkspace = &set_workspace;
    t.cublasSetPointerMode = &set_pointer_mode;
    t.cublasSetMathMode = &set_math_mode;
    t.cublasSetAtomicsMode = &set_atomics_mode;
    t.cublasSaxpy_64 = &saxpy;
    t.cublasSscal_64 = &sscal;
    t.cublasScopy_64 = &scopy;
    t.cublasSgemv_64 = &sgemv;
    t.cublasSdot_64 = &sdot;
    t.cublasGemmBatchedEx_64 = &gemm_batched;
    t.cublasStrsmBatched_64 = &strsm_batched;
    t.cublasSgetrsBatched = &sgetrs_batched;
    t.path = "fake";
    t.version = 130000;
}

fake_cublas::~fake_cublas()
{
    if (!state_->handles.empty() && !state_->driver.dead())
        state_->driver.complain(std::to_string(state_->handles.size()) + " handles of cuBLAS left");
    current = nullptr;
}

const coaccel::cuda::cublas_api& fake_cublas::api() const noexcept
{
    return state_->table;
}

void fake_cublas::fail(std::string_view function, cublasStatus_t status, int nth)
{
    const std::scoped_lock lock(state_->mutex);
    state_->plans[std::string(function)].push_back({status, nth});
}

int fake_cublas::calls(std::string_view function) const
{
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->counts.find(function);
    return found == state_->counts.end() ? 0 : found->second;
}

std::size_t fake_cublas::handles() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->handles.size();
}

} // namespace test
