#include "cuda/prim/warm_kernels.hpp"

#include "support/fake_nvrtc.hpp"

#include <coaccel/device/warm_kernels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace test_cuda_warm_kernels {

namespace {

using namespace coaccel;

const std::vector<std::string> names{"one", "two", "three", "four", "five"};

system_info machine_with(std::vector<int> architectures)
{
    system_info made;
    library_report& driver = made.libraries.emplace_back();
    driver.name = "libcuda";
    driver.path = "/fake/libcuda.so.1";
    for (const int a : architectures)
        made.gpus.emplace_back().compute_capability = a;
    return made;
}

/// While this object exists, no file of this process can grow beyond the limit.
class small_files {
public:
    explicit small_files(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN))
    {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const rlimit less{bytes, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &less) == 0);
    }
    small_files(const small_files&) = delete;
    small_files& operator=(const small_files&) = delete;
    ~small_files()
    {
        (void)::setrlimit(RLIMIT_FSIZE, &before_);
        (void)std::signal(SIGXFSZ, handler_);
    }

private:
    void (*handler_)(int);
    rlimit before_{};
};

} // namespace

TEST_SUITE_BEGIN("warm_kernels");

TEST_CASE("each kernel is compiled once, and found in the cache the next time")
{
    test::fake_nvrtc nvrtc;
    const cuda::compile_target target{.architecture = 90, .driver_version = 13000, .nvrtc = &nvrtc.api()};
    std::vector<std::uint64_t> told;
    const auto progress = [&](std::uint64_t done, std::uint64_t total) {
        CHECK(total == names.size());
        told.push_back(done);
    };
    CHECK_FALSE(cuda::warm_kernels(names, target, 3, progress));
    CHECK(told == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
    std::set<std::string> compiled;
    for (const auto& c : nvrtc.compilations())
        compiled.insert(c.name);
    CHECK(compiled == std::set<std::string>(names.begin(), names.end()));
    CHECK(nvrtc.compilations().size() == names.size());
    CHECK_FALSE(cuda::warm_kernels(names, target, 3, progress));
    CHECK(told.size() == 2 * names.size());
    CHECK(nvrtc.compilations().size() == names.size());
    // Without a function for the progress.
    CHECK_FALSE(cuda::warm_kernels(names, target, 3, {}));
}

TEST_CASE("the first error ends it")
{
    test::fake_nvrtc nvrtc;
    nvrtc.failures = 1;
    int told = 0;
    const auto ec = cuda::warm_kernels(names, {.architecture = 90, .driver_version = 13000, .nvrtc = &nvrtc.api()}, 1,
                                       [&](std::uint64_t, std::uint64_t) { ++told; });
    CHECK(ec == errc::compile_failed);
    CHECK(ec.message().starts_with("one, architecture 90: "));
    CHECK(told == 0);
    CHECK(nvrtc.compilations().size() == 1);
}

TEST_CASE("a cache that cannot store anything is an error with its folder")
{
    test::fake_nvrtc nvrtc;
    // Not a folder.
    ::setenv("COACCEL_CACHE_DIR", "/dev/null/kernels", 1);
    (void)detail::copy_environment();
    const auto ec = cuda::warm_kernels(names, {.architecture = 90, .driver_version = 13000, .nvrtc = &nvrtc.api()}, 1,
                                       [](std::uint64_t, std::uint64_t) {});
    CHECK(ec == errc::start_failed);
    CHECK(ec.message() == "cannot write to the folder for compiled kernels: /dev/null/kernels");
    CHECK(nvrtc.compilations().empty());
}

TEST_CASE("a kernel that the cache does not store is an error")
{
    test::fake_nvrtc nvrtc;
    int told = 0;
    error_code ec;
    {
        // Enough for the test of the folder, but not for a kernel, whose file contains its source.
        const small_files full(4096);
        ec = cuda::warm_kernels(names, {.architecture = 90, .driver_version = 13000, .nvrtc = &nvrtc.api()}, 1,
                                [&](std::uint64_t, std::uint64_t) { ++told; });
    }
    CHECK(ec == errc::start_failed);
    CHECK(ec.message().starts_with("cannot store the compiled kernel one in the folder /"));
    CHECK(told == 0);
}

TEST_CASE("a GPU that NVRTC refuses does not keep others from getting their kernels")
{
    test::fake_nvrtc nvrtc;
    const cuda::compile_target target{.driver_version = 13000, .nvrtc = &nvrtc.api()};
    std::vector<std::uint64_t> told;
    std::uint64_t total = 0;
    const auto progress = [&](std::uint64_t done, std::uint64_t all) {
        told.push_back(done);
        total = all;
    };
    const auto made = cuda::warm_kernels(names, {50, 90}, target, 1, progress);
    REQUIRE(made);
    CHECK(made.value() == names.size());
    CHECK(told == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
    CHECK(total == names.size());
    const auto none = cuda::warm_kernels(names, {50, 61}, target, 1, progress);
    CHECK(none.error() == errc::invalid_argument);
    CHECK(none.error().message() == "NVRTC does not support architecture 50, nor an older one; "
                                    "NVRTC does not support architecture 61, nor an older one");
}

TEST_CASE("kernels are compiled once for equal GPUs, and without a GPU the driver's problem is told")
{
    CHECK(cuda::gpu_architectures(machine_with({90, 80, 90})).value() == std::vector<int>{80, 90});
    auto machine = machine_with({});
    machine.libraries[0].problem = "the driver finds no GPU";
    CHECK(cuda::gpu_architectures(machine).error() == errc::no_device);
    CHECK(cuda::gpu_architectures(machine).error().message() == "there is no GPU: the driver finds no GPU");
    machine.libraries[0].path.clear();
    machine.libraries[0].problem = "libcuda: tried everything";
    CHECK(cuda::gpu_architectures(machine).error() == errc::library_missing);
    CHECK(cuda::gpu_architectures({}).error() == errc::no_device);
}

TEST_SUITE_END();

} // namespace test_cuda_warm_kernels
