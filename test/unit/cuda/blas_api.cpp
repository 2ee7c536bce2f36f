#include "cuda/blas/cublas_api.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/cublas_setup.hpp"
#include "cuda/driver/error.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace test_cuda_blas_api {

namespace {

using namespace coaccel;
using namespace coaccel::cuda;

int version[3];
cublasStatus_t version_status;

cublasStatus_t get_property(libraryPropertyType which, int* value)
{
    *value = version[which];
    return version_status;
}

void anything() {}

#define COACCEL_SYMBOL_OF(function) COACCEL_CUDA_SYMBOL(function),
const std::set<std::string> optional_symbols{COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(COACCEL_SYMBOL_OF)};
#undef COACCEL_SYMBOL_OF

struct fake_library {
    std::set<std::string> left_out;
    std::vector<std::string> asked_for;

    explicit fake_library(int major = 12, int minor = 0, int patch = 1)
    {
        version[MAJOR_VERSION] = major;
        version[MINOR_VERSION] = minor;
        version[PATCH_LEVEL] = patch;
        version_status = CUBLAS_STATUS_SUCCESS;
    }

    error_code fill(cublas_api& api)
    {
        const symbol_lookup find = [this](const char* symbol) -> result<void*> {
            asked_for.push_back(symbol);
            if (left_out.contains(symbol))
                return make_error_with_message(errc::library_too_old, std::string("fake: no symbol ") + symbol);
            if (std::string(symbol) == "cublasGetProperty")
                return reinterpret_cast<void*>(&get_property);
            return reinterpret_cast<void*>(&anything);
        };
        api.path = "/fake/libcublas.so.12";
        return cuda::fill(api, find);
    }
};

} // namespace

TEST_SUITE_BEGIN("cublas_api");

TEST_CASE("every function is filled, and every symbol is required, unless an older cuBLAS lacks it")
{
    fake_library whole;
    cublas_api api;
    REQUIRE_FALSE(whole.fill(api));
    CHECK(api.path == "/fake/libcublas.so.12");
    CHECK(api.version == 120001);
#define CHECK_FILLED(function) CHECK_MESSAGE(bool(api.function != nullptr), COACCEL_CUDA_SYMBOL(function));
    COACCEL_CUBLAS_FUNCTIONS(CHECK_FILLED)
    COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(CHECK_FILLED)
#undef CHECK_FILLED

    for (const std::string& symbol : whole.asked_for) {
        if (optional_symbols.contains(symbol))
            continue;
        CAPTURE(symbol);
        fake_library library;
        library.left_out = {symbol};
        const error_code ec = library.fill(api);
        CHECK(ec == errc::library_too_old);
        CHECK(ec.message() == "fake: no symbol " + symbol);
    }
}

TEST_CASE("functions that an older cuBLAS lacks are null")
{
    fake_library old;
    old.left_out = optional_symbols;
    cublas_api api;
    REQUIRE_FALSE(old.fill(api));
#define CHECK_NULL(function) CHECK_MESSAGE(bool(api.function == nullptr), COACCEL_CUDA_SYMBOL(function));
    COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(CHECK_NULL)
#undef CHECK_NULL
    CHECK(bool(api.cublasGemmEx_64 != nullptr));
}

TEST_CASE("the symbols are those of the functions with 64-bit sizes")
{
    fake_library library;
    cublas_api api;
    REQUIRE_FALSE(library.fill(api));
    const std::set<std::string> symbols(library.asked_for.begin(), library.asked_for.end());
    CHECK(symbols.contains("cublasCreate_v2"));
    CHECK(symbols.contains("cublasSaxpy_v2_64"));
    CHECK(symbols.contains("cublasGemmEx_64"));
}

TEST_CASE("versions before 12.0 are too old")
{
    cublas_api api;
    fake_library old(11, 11, 3);
    const error_code ec = old.fill(api);
    CHECK(ec == errc::library_too_old);
    CHECK(ec.message() == "/fake/libcublas.so.12: version 11.11.3, 12.0.0 or later is needed");

    fake_library recent(13, 1, 0);
    CHECK_FALSE(recent.fill(api));
    CHECK(api.version == 130100);

    fake_library mute;
    version_status = CUBLAS_STATUS_INVALID_VALUE;
    CHECK(mute.fill(api) == make_error(CUBLAS_STATUS_INVALID_VALUE));
}

TEST_CASE("the installed cuBLAS, if any, is recent enough and is loaded once")
{
    const auto loaded = cublas_api::load();
    if (!loaded) {
        CHECK(loaded.error() == errc::library_missing);
        MESSAGE("not run: " << loaded.error().message());
        return;
    }
    CHECK(loaded.value()->version >= oldest_cublas);
    CHECK(loaded.value()->path.find("libcublas.so") != std::string::npos);
    CHECK(cublas_api::load().value() == loaded.value());
}

TEST_SUITE_END();

} // namespace test_cuda_blas_api
