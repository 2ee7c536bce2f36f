#include "cuda/driver/driver_api.hpp"
#include "cuda/factory.hpp"
#include "support/context_cases.hpp"

#include <atomic>
#include <sys/mman.h>
#include <thread>

// The engine's conformance suite on a GPU. Tests that cause a fault are in faults.cpp and run in their own processes.
namespace {

constexpr const char* wait_for_word = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry wait_for_word(.param .u64 word)
{
    .reg .u64 %address;
    .reg .u32 %value;
    .reg .pred %closed;
    ld.param.u64 %address, [word];
again:
    ld.volatile.global.u32 %value, [%address];
    setp.eq.u32 %closed, %value, 0;
    @%closed bra again;
    ret;
}
)";

/// A page that the GPU can access, registered in the primary context.
class shared_page {
public:
    static constexpr std::size_t bytes = 4096;

    explicit shared_page(const coaccel::cuda::driver_api& api) : api_(api)
    {
        CUcontext popped = nullptr;
        good_ = api_.cuDeviceGet(&device_, 0) == CUDA_SUCCESS &&
                api_.cuDevicePrimaryCtxRetain(&context_, device_) == CUDA_SUCCESS &&
                api_.cuCtxPushCurrent(context_) == CUDA_SUCCESS &&
                api_.cuMemHostRegister(page_, bytes, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS &&
                api_.cuCtxPopCurrent(&popped) == CUDA_SUCCESS;
    }
    shared_page(const shared_page&) = delete;
    shared_page& operator=(const shared_page&) = delete;

    ~shared_page()
    {
        CUcontext popped = nullptr;
        if (context_ && api_.cuCtxPushCurrent(context_) == CUDA_SUCCESS) {
            (void)api_.cuMemHostUnregister(page_);
            (void)api_.cuCtxPopCurrent(&popped);
            (void)api_.cuDevicePrimaryCtxRelease(device_);
        }
        ::munmap(page_, bytes);
    }

    /// The next unused word; null if there is none left.
    unsigned* take() { return good_ && used_ < bytes / sizeof(unsigned) ? page_ + used_++ : nullptr; }

private:
    const coaccel::cuda::driver_api& api_;
    unsigned* page_ =
        static_cast<unsigned*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    bool good_ = false;
    std::size_t used_ = 0;
};

/// Kernels of one context that run until a word is non-zero.
class gatekeeper {
public:
    /// Returns the word that releases the stream; null if the stream could not be held.
    unsigned* hold(CUstream s)
    {
        const auto& api = *coaccel::cuda::driver_api::load().value();
        static shared_page page(api);
        unsigned* word = page.take();
        if (!word || (!function_ && !prepare(api, *word, s)))
            return nullptr;
        void* arguments[] = {&word};
        const auto r = api.cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr);
        return r == CUDA_SUCCESS ? word : nullptr;
    }

private:
    // All of this happens before the first kernel waits: the driver may load code only while the GPU is idle.
    bool prepare(const coaccel::cuda::driver_api& api, unsigned& word, CUstream s)
    {
        CUmodule module = nullptr;
        return api.cuModuleLoadData(&module, wait_for_word) == CUDA_SUCCESS &&
               api.cuModuleGetFunction(&function_, module, "wait_for_word") == CUDA_SUCCESS &&
               api.cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(&word), 0, 1, s) == CUDA_SUCCESS &&
               api.cuStreamSynchronize(s) == CUDA_SUCCESS;
    }

    CUfunction function_ = nullptr;
};

class gpu_world final : public test::context_world {
public:
    gpu_world() { frees_in_stream_order = true; }

    ~gpu_world() override
    {
        for (auto& t : doormen_)
            t.join();
    }

    coaccel::detail::context_factory factory() override { return coaccel::cuda::make_factory({}, 0); }
    bool can_poison() const noexcept override { return false; }
    void poison() override {}

    void hold(coaccel::native_stream stream, test::gate gate) override
    {
        unsigned* const word = gatekeeper_.hold(static_cast<CUstream>(stream.handle));
        REQUIRE(word);
        doormen_.emplace_back([gate, word]() mutable {
            gate.pass();
            std::atomic_ref(*word).store(1);
        });
    }

private:
    gatekeeper gatekeeper_;
    std::vector<std::thread> doormen_;
};

} // namespace

std::vector<test::context_setting> test::contexts_under_test()
{
    std::vector<context_setting> all;
    for (const auto& [name, options] : context_variants())
        all.push_back({name + " on a GPU", true, [options = options] {
                           auto made = std::make_unique<gpu_world>();
                           made->context = options;
                           return made;
                       }});
    return all;
}
