#include "cuda/jit/nvrtc_api.hpp"

#include "chosen_library.hpp"
#include "cuda/jit/compiler.hpp"
#include "cuda/jit/nvrtc_error.hpp"
#include "cuda/jit/nvrtc_setup.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace test_cuda_nvrtc_api {

namespace {

using namespace coaccel;
using namespace coaccel::cuda;

int major_version = 12;
int minor_version = 0;
nvrtcResult version_result = NVRTC_SUCCESS;

nvrtcResult get_version(int* major, int* minor)
{
    *major = major_version;
    *minor = minor_version;
    return version_result;
}

void anything() {}

struct fake_library {
    std::set<std::string> left_out;
    std::vector<std::string> asked_for;

    fake_library()
    {
        major_version = 12;
        minor_version = 0;
        version_result = NVRTC_SUCCESS;
    }

    error_code fill(nvrtc_api& api)
    {
        const symbol_lookup find = [this](const char* symbol) -> result<void*> {
            asked_for.push_back(symbol);
            if (left_out.contains(symbol))
                return make_error_with_message(errc::library_too_old, std::string("fake: no symbol ") + symbol);
            if (std::string(symbol) == "nvrtcVersion")
                return reinterpret_cast<void*>(&get_version);
            return reinterpret_cast<void*>(&anything);
        };
        api.path = "/fake/libnvrtc.so.12";
        return cuda::fill(api, find);
    }
};

} // namespace

TEST_SUITE_BEGIN("nvrtc_api");

TEST_CASE("every function is filled, and every symbol is required")
{
    fake_library whole;
    nvrtc_api api;
    REQUIRE_FALSE(whole.fill(api));
    CHECK(api.path == "/fake/libnvrtc.so.12");
    CHECK(api.version == 12000);
#define CHECK_FILLED(function) CHECK_MESSAGE((api.function != nullptr), COACCEL_CUDA_SYMBOL(function));
    COACCEL_NVRTC_FUNCTIONS(CHECK_FILLED)
#undef CHECK_FILLED

    for (const std::string& symbol : whole.asked_for) {
        CAPTURE(symbol);
        fake_library library;
        library.left_out = {symbol};
        const error_code ec = library.fill(api);
        CHECK(ec == errc::library_too_old);
        CHECK(ec.message() == "fake: no symbol " + symbol);
    }
}

TEST_CASE("versions before 12.0 are too old")
{
    fake_library library;
    nvrtc_api api;
    major_version = 11;
    minor_version = 8;
    const error_code ec = library.fill(api);
    CHECK(ec == errc::library_too_old);
    CHECK(ec.message() == "/fake/libnvrtc.so.12: version 11.8, 12.0 or later is needed");

    major_version = 13;
    minor_version = 1;
    CHECK_FALSE(library.fill(api));
    CHECK(api.version == 13010);

    version_result = NVRTC_ERROR_INTERNAL_ERROR;
    CHECK(library.fill(api) == make_error(NVRTC_ERROR_INTERNAL_ERROR));
}

TEST_CASE("the installed NVRTC, if any, is recent enough and is loaded once")
{
    const auto loaded = nvrtc_api::load();
    if (!loaded) {
        CHECK(loaded.error() == errc::library_missing);
        MESSAGE("not run: " << loaded.error().message());
        return;
    }
    CHECK(loaded.value()->version >= oldest_nvrtc);
    CHECK(loaded.value()->path.find("libnvrtc.so") != std::string::npos);
    CHECK(std::string(loaded.value()->nvrtcGetErrorString(NVRTC_ERROR_COMPILATION)) == "NVRTC_ERROR_COMPILATION");
    CHECK(nvrtc_api::load().value() == loaded.value());
}

// Run in its own process: a loaded compiler is never unloaded.
TEST_CASE("without a compiler a host function replaces a kernel, but not on a GPU" * doctest::skip())
{
    const chosen_library nowhere(vendor_library::nvrtc, "/nowhere/libnvrtc.so.13");
    REQUIRE_FALSE(nvrtc_api::load());
    const auto how = jit::compile_options("f").host([](const jit::launch_shape&) {});
    const std::string source = "extern \"C\" __global__ void f() {}";
    CHECK(compile(source, how, {.architecture = 0}));
    CHECK(compile(source, how, {.architecture = 90}).error() == errc::library_missing);
}

TEST_SUITE_END();

} // namespace test_cuda_nvrtc_api
