#include "raw.hpp"

#include "clock.hpp"
#include "cuda/loader/dynamic_library.hpp"
#include "cuda/loader/table.hpp"
#include "cuda/vendor_libraries.hpp"

#include <cstring>
#include <sys/mman.h>

namespace coaccel::bench {
namespace {

constexpr char empty_kernel[] = ".version 7.0\n"
                                ".target sm_75\n"
                                ".address_size 64\n"
                                ".visible .entry empty()\n"
                                "{\n"
                                "    ret;\n"
                                "}\n";

} // namespace

raw_gpu::raw_gpu(const cuda::driver_api& api) : api_(&api)
{
    const auto library = value_of(cuda::dynamic_library::open(cuda::driver_library), "the driver");
    require(library.find(allocate, COACCEL_CUDA_SYMBOL(cuMemAlloc)), "the driver");
    require(library.find(copy_in, COACCEL_CUDA_SYMBOL(cuMemcpyHtoD)), "the driver");
    require(library.find(copy_out, COACCEL_CUDA_SYMBOL(cuMemcpyDtoH)), "the driver");
    require(library.find(write_value, COACCEL_CUDA_SYMBOL(cuStreamWriteValue32)), "the driver");

    check(api.cuDeviceGet(&device_, 0), "cuDeviceGet");
    check(api.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    const auto inside = enter();
    check(api.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
    check(api.cuModuleLoadData(&module_, empty_kernel), "cuModuleLoadData");
    check(api.cuModuleGetFunction(&empty_, module_, "empty"), "cuModuleGetFunction");
}

raw_gpu::~raw_gpu()
{
    if (api_->cuCtxPushCurrent(context_) != CUDA_SUCCESS)
        return;
    (void)api_->cuStreamDestroy(stream_);
    (void)api_->cuModuleUnload(module_);
    CUcontext popped = nullptr;
    (void)api_->cuCtxPopCurrent(&popped);
    (void)api_->cuDevicePrimaryCtxRelease(device_);
}

void raw_gpu::fail(CUresult r, const char* what) const
{
    const char* text = nullptr;
    if (api_->cuGetErrorName(r, &text) != CUDA_SUCCESS || !text)
        text = "an unknown error";
    throw failure(std::string(what) + ": " + text);
}

void raw_gpu::round_trips(int skip, int count, std::vector<double>& times) const
{
    const auto inside = enter();
    for (int i = 0; i < skip + count; ++i) {
        const auto began = clock::now();
        launch();
        synchronize();
        const double took = seconds_since(began);
        if (i >= skip)
            times.push_back(took);
    }
}

double raw_gpu::enqueue_time(int count) const
{
    const auto inside = enter();
    launch();
    synchronize();
    const auto began = clock::now();
    for (int i = 0; i < count; ++i)
        launch();
    synchronize();
    return seconds_since(began) / count;
}

raw_memory::raw_memory(const raw_gpu& raw, std::size_t bytes) : raw_(raw)
{
    const auto inside = raw_.enter();
    raw_.check(raw_.allocate(&address_, bytes), "cuMemAlloc");
}

raw_memory::~raw_memory()
{
    CUcontext popped = nullptr;
    if (raw_.api().cuCtxPushCurrent(raw_.context()) != CUDA_SUCCESS)
        return;
    (void)raw_.api().cuMemFree(address_);
    (void)raw_.api().cuCtxPopCurrent(&popped);
}

raw_pinned::raw_pinned(const raw_gpu& raw, std::size_t floats)
    : raw_(raw), bytes_(floats * sizeof(float)),
      memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
{
    if (memory_ == MAP_FAILED)
        throw failure("mmap: no memory");
    std::memset(memory_, 1, bytes_);
    const auto inside = raw_.enter();
    const CUresult r = raw_.api().cuMemHostRegister(memory_, bytes_, 0);
    if (r != CUDA_SUCCESS)
        (void)munmap(memory_, bytes_);
    raw_.check(r, "cuMemHostRegister");
}

raw_pinned::~raw_pinned()
{
    CUcontext popped = nullptr;
    if (raw_.api().cuCtxPushCurrent(raw_.context()) == CUDA_SUCCESS) {
        (void)raw_.api().cuMemHostUnregister(memory_);
        (void)raw_.api().cuCtxPopCurrent(&popped);
    }
    (void)munmap(memory_, bytes_);
}

raw_pool::raw_pool(const raw_gpu& raw) : raw_(raw)
{
    const auto inside = raw_.enter();
    CUmemPoolProps how{};
    how.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    how.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    how.location.id = raw_.device();
    raw_.check(raw_.api().cuMemPoolCreate(&pool_, &how), "cuMemPoolCreate");
    cuuint64_t all = ~cuuint64_t(0);
    const CUresult r = raw_.api().cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
    if (r != CUDA_SUCCESS)
        (void)raw_.api().cuMemPoolDestroy(pool_);
    raw_.check(r, "cuMemPoolSetAttribute");
}

raw_pool::~raw_pool()
{
    (void)raw_.api().cuMemPoolDestroy(pool_);
}

raw_blas::raw_blas(const raw_gpu& raw) : raw_(raw), api_(value_of(cuda::cublas_api::load(), "cuBLAS"))
{
    const auto inside = raw_.enter();
    check(api_->cublasCreate(&handle_), "cublasCreate");
    check(api_->cublasSetStream(handle_, raw_.stream()), "cublasSetStream");
}

raw_blas::~raw_blas()
{
    CUcontext popped = nullptr;
    if (raw_.api().cuCtxPushCurrent(raw_.context()) != CUDA_SUCCESS)
        return;
    (void)api_->cublasDestroy(handle_);
    (void)raw_.api().cuCtxPopCurrent(&popped);
}

void raw_blas::check(cublasStatus_t s, const char* what) const
{
    if (s != CUBLAS_STATUS_SUCCESS)
        throw failure(std::string(what) + ": " + api_->cublasGetStatusString(s));
}

void raw_blas::multiply(std::int64_t n, const raw_memory& a, const raw_memory& b, const raw_memory& c) const
{
    const float one = 1;
    const float zero = 0;
    check(api_->cublasGemmEx_64(handle_, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.pointer(), CUDA_R_32F, n,
                                b.pointer(), CUDA_R_32F, n, &zero, c.pointer(), CUDA_R_32F, n, CUBLAS_COMPUTE_32F,
                                CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
}

} // namespace coaccel::bench
