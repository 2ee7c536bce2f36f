#include "cuda/blas/cublaslt_api.hpp"

#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/cublaslt_setup.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace test_cuda_cublaslt_api {

namespace {

using namespace coaccel;
using namespace coaccel::cuda;

int lt_version[3];
cublasStatus_t lt_version_status;

cublasStatus_t get_lt_property(libraryPropertyType which, int* value)
{
    *value = lt_version[which];
    return lt_version_status;
}

void lt_anything() {}

struct fake_lt_library {
    std::set<std::string> left_out;
    std::vector<std::string> asked_for;

    explicit fake_lt_library(int major = 12, int minor = 0, int patch = 1)
    {
        lt_version[MAJOR_VERSION] = major;
        lt_version[MINOR_VERSION] = minor;
        lt_version[PATCH_LEVEL] = patch;
        lt_version_status = CUBLAS_STATUS_SUCCESS;
    }

    error_code fill(cublaslt_api& api)
    {
        const symbol_lookup find = [this](const char* symbol) -> result<void*> {
            asked_for.push_back(symbol);
            if (left_out.contains(symbol))
                return make_error_with_message(errc::library_too_old, std::string("fake: no symbol ") + symbol);
            if (std::string(symbol) == "cublasLtGetProperty")
                return reinterpret_cast<void*>(&get_lt_property);
            return reinterpret_cast<void*>(&lt_anything);
        };
        api.path = "/fake/libcublasLt.so.12";
        return cuda::fill(api, find);
    }
};

} // namespace

TEST_SUITE_BEGIN("cublaslt_api");

TEST_CASE("every function is filled, and every symbol is required")
{
    fake_lt_library whole;
    cublaslt_api api;
    REQUIRE_FALSE(whole.fill(api));
    CHECK(api.version == 120001);
#define CHECK_FILLED(function) CHECK_MESSAGE(bool(api.function != nullptr), COACCEL_CUDA_SYMBOL(function));
    COACCEL_CUBLASLT_FUNCTIONS(CHECK_FILLED)
#undef CHECK_FILLED
    for (const std::string& symbol : whole.asked_for) {
        CAPTURE(symbol);
        fake_lt_library library;
        library.left_out = {symbol};
        const error_code ec = library.fill(api);
        CHECK(ec == errc::library_too_old);
        CHECK(ec.message() == "fake: no symbol " + symbol);
    }
}

TEST_CASE("versions before 12.0 are too old")
{
    cublaslt_api api;
    fake_lt_library old(11, 11, 3);
    const error_code ec = old.fill(api);
    CHECK(ec == errc::library_too_old);
    CHECK(ec.message() == "/fake/libcublasLt.so.12: version 11.11.3, 12.0.0 or later is needed");

    fake_lt_library mute;
    lt_version_status = CUBLAS_STATUS_INVALID_VALUE;
    CHECK(mute.fill(api) == make_error(CUBLAS_STATUS_INVALID_VALUE));
}

TEST_CASE("the installed cuBLASLt, if any, is recent enough and is loaded once")
{
    const auto loaded = cublaslt_api::load();
    if (!loaded) {
        CHECK(loaded.error() == errc::library_missing);
        MESSAGE("not run: " << loaded.error().message());
        return;
    }
    CHECK(loaded.value()->version >= oldest_cublaslt);
    CHECK(loaded.value()->path.find("libcublasLt.so") != std::string::npos);
    CHECK(cublaslt_api::load().value() == loaded.value());
}

TEST_SUITE_END();

} // namespace test_cuda_cublaslt_api
