#include "cuda/factory.hpp"
#include "cuda/load/driver_api.hpp"
#include "support/context_cases.hpp"

#include <atomic>
#include <sys/mman.h>
#include <thread>

// The engine's conformance suite on a GPU. What faults there is in faults.cpp, in processes of its own.
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

/// Kernels that run until a word in pinned memory is not zero.
class gatekeeper {
public:
    ~gatekeeper()
    {
        if (page_)
            ::munmap(page_, page_bytes);
    }

    /// Tells how to let the stream go on; null when it could not be held.
    unsigned* hold(CUstream s)
    {
        if (!function_ && !prepare(s))
            return nullptr;
        unsigned* word = static_cast<unsigned*>(page_) + used_++;
        void* arguments[] = {&word};
        const bool held = used_ <= page_bytes / sizeof(unsigned) &&
                          api_->cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr) == CUDA_SUCCESS;
        return held ? word : nullptr;
    }

private:
    // All of it before the first kernel waits: the driver may load code and register memory only when the GPU is idle.
    bool prepare(CUstream s)
    {
        api_ = coaccel::cuda::load_driver().value();
        page_ = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CUmodule module = nullptr;
        return api_->cuMemHostRegister(page_, page_bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) ==
                   CUDA_SUCCESS &&
               api_->cuModuleLoadData(&module, wait_for_word) == CUDA_SUCCESS &&
               api_->cuModuleGetFunction(&function_, module, "wait_for_word") == CUDA_SUCCESS &&
               api_->cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(page_), 0, 4, s) == CUDA_SUCCESS &&
               api_->cuStreamSynchronize(s) == CUDA_SUCCESS;
    }

    static constexpr std::size_t page_bytes = 4096;

    const coaccel::cuda::driver_api* api_ = nullptr;
    CUfunction function_ = nullptr;
    void* page_ = nullptr;
    std::size_t used_ = 0;
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

    void hold(coaccel::native_stream stream, test::lane_gate gate) override
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
