#ifndef COACCEL_TEST_SUPPORT_FAKE_NVRTC_HPP
#define COACCEL_TEST_SUPPORT_FAKE_NVRTC_HPP

#include "cuda/jit/nvrtc_api.hpp"
#include "posix/environment.hpp"
#include "support/temporary_folder.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace test {

/// A compiler whose code is empty, and whose symbol for a kernel is the name expression, so that the kernels of
/// fake_cuda can have these names. Compiled code goes to a disk cache of its own. One at a time.
class fake_nvrtc {
public:
    struct compilation {
        std::string name;
        std::vector<std::string> options;
        std::thread::id thread;
    };

    fake_nvrtc()
    {
        here() = this;
        ::setenv("COACCEL_CACHE_DIR", folder_.path().c_str(), 1);
        (void)coaccel::detail::copy_environment();
        api_.path = "fake";
        api_.version = 13000;
        api_.build = "1";
        api_.nvrtcVersion = [](int* major, int* minor) {
            *major = 13;
            *minor = 0;
            return NVRTC_SUCCESS;
        };
        api_.nvrtcGetErrorString = [](nvrtcResult) { return "fake"; };
        api_.nvrtcGetNumSupportedArchs = [](int* count) {
            *count = 1;
            return NVRTC_SUCCESS;
        };
        api_.nvrtcGetSupportedArchs = [](int* all) {
            *all = 90;
            return NVRTC_SUCCESS;
        };
        api_.nvrtcCreateProgram = [](nvrtcProgram* made, const char*, const char*, int, const char* const*,
                                     const char* const*) {
            *made = reinterpret_cast<nvrtcProgram>(new std::string);
            return NVRTC_SUCCESS;
        };
        api_.nvrtcDestroyProgram = [](nvrtcProgram* p) {
            delete text(*p);
            return NVRTC_SUCCESS;
        };
        api_.nvrtcAddNameExpression = [](nvrtcProgram p, const char* name) {
            *text(p) = name;
            return NVRTC_SUCCESS;
        };
        api_.nvrtcGetLoweredName = [](nvrtcProgram p, const char*, const char** lowered) {
            *lowered = text(p)->c_str();
            return NVRTC_SUCCESS;
        };
        api_.nvrtcCompileProgram = [](nvrtcProgram p, int count, const char* const* options) {
            return here()->compile(*text(p), {options, options + count});
        };
        api_.nvrtcGetProgramLogSize = [](nvrtcProgram, size_t* size) {
            *size = 4;
            return NVRTC_SUCCESS;
        };
        api_.nvrtcGetProgramLog = [](nvrtcProgram, char* log) {
            std::memcpy(log, "log", 4);
            return NVRTC_SUCCESS;
        };
        api_.nvrtcGetCUBINSize = api_.nvrtcGetPTXSize = [](nvrtcProgram, size_t* size) {
            *size = 5;
            return NVRTC_SUCCESS;
        };
        api_.nvrtcGetCUBIN = api_.nvrtcGetPTX = [](nvrtcProgram, char* code) {
            std::memcpy(code, "code", 5);
            return NVRTC_SUCCESS;
        };
    }
    fake_nvrtc(const fake_nvrtc&) = delete;
    fake_nvrtc& operator=(const fake_nvrtc&) = delete;
    ~fake_nvrtc()
    {
        ::unsetenv("COACCEL_CACHE_DIR");
        (void)coaccel::detail::copy_environment();
        here() = nullptr;
    }

    const coaccel::cuda::nvrtc_api& api() const noexcept { return api_; }

    /// The next compilations fail.
    std::atomic<int> failures{0};

    std::vector<compilation> compilations() const
    {
        const std::scoped_lock lock(mutex_);
        return compilations_;
    }

private:
    static fake_nvrtc*& here()
    {
        static fake_nvrtc* only = nullptr;
        return only;
    }

    static std::string* text(nvrtcProgram p) noexcept { return reinterpret_cast<std::string*>(p); }

    nvrtcResult compile(const std::string& name, std::vector<std::string> options)
    {
        const std::scoped_lock lock(mutex_);
        compilations_.push_back({name, std::move(options), std::this_thread::get_id()});
        if (failures == 0)
            return NVRTC_SUCCESS;
        --failures;
        return NVRTC_ERROR_COMPILATION;
    }

    temporary_folder folder_;
    coaccel::cuda::nvrtc_api api_;
    mutable std::mutex mutex_;
    std::vector<compilation> compilations_;
};

} // namespace test

#endif
