#include "cuda/driver/driver_api.hpp"

#include "cuda/driver/driver_setup.hpp"
#include "cuda/driver/error.hpp"
#include "unit/cuda/chosen_library.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace test_cuda_driver_api {

namespace {

using namespace coaccel;
using namespace coaccel::cuda;

/// A driver with every symbol except those left out; its functions return preset values.
struct fake_library {
    static inline int version = oldest_driver;
    static inline CUresult version_result = CUDA_SUCCESS;
    static inline CUresult init_result = CUDA_SUCCESS;

    std::set<std::string> left_out;
    std::vector<std::string> asked_for;

    fake_library()
    {
        version = oldest_driver;
        version_result = CUDA_SUCCESS;
        init_result = CUDA_SUCCESS;
    }

    static CUresult get_version(int* into)
    {
        *into = version;
        return version_result;
    }
    static CUresult init(unsigned) { return init_result; }
    static void anything() {}

    result<void*> find(const std::string& symbol)
    {
        asked_for.push_back(symbol);
        if (left_out.contains(symbol))
            return make_error_with_message(errc::library_too_old, "fake: no symbol " + symbol);
        if (symbol == "cuDriverGetVersion")
            return reinterpret_cast<void*>(&get_version);
        if (symbol == "cuInit")
            return reinterpret_cast<void*>(&init);
        return reinterpret_cast<void*>(&anything);
    }

    error_code fill(driver_api& api)
    {
        api.path = "/fake/libcuda.so.1";
        return cuda::fill(api, [this](const char* symbol) { return find(symbol); });
    }
};

const std::set<std::string>& optional_symbols()
{
#define SYMBOL(function) COACCEL_CUDA_SYMBOL(function),
    static const std::set<std::string> all{COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(SYMBOL)};
#undef SYMBOL
    return all;
}

} // namespace

TEST_SUITE_BEGIN("driver_api");

TEST_CASE("every function is filled from the symbol version of the headers")
{
    fake_library library;
    driver_api api;
    REQUIRE_FALSE(library.fill(api));
    CHECK(api.path == "/fake/libcuda.so.1");
    CHECK(api.version == oldest_driver);

#define CHECK_FILLED(function) CHECK_MESSAGE((api.function != nullptr), COACCEL_CUDA_SYMBOL(function));
    COACCEL_CUDA_DRIVER_FUNCTIONS(CHECK_FILLED)
#undef CHECK_FILLED
    CHECK((api.prefetch != nullptr));
    CHECK((api.advise != nullptr));
    CHECK((api.elapsed_time != nullptr));

    const std::set<std::string> asked(library.asked_for.begin(), library.asked_for.end());
    for (const char* symbol :
         {"cuInit", "cuMemFree_v2", "cuDevicePrimaryCtxRelease_v2", "cuEventDestroy_v2", "cuMemcpyHtoDAsync_v2",
          "cuMemHostRegister_v2", "cuMemAllocFromPoolAsync", "cuDeviceTotalMem_v2", "cuDevicePrimaryCtxRetain",
          "cuMemPrefetchAsync_v2", "cuMemAdvise_v2", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
          "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuEventElapsedTime"})
        CHECK_MESSAGE(asked.contains(symbol), symbol);
    for (const char* symbol :
         {"cuMemFree", "cuMemPrefetchAsync", "cuMemAdvise", "cuDevicePrimaryCtxRelease", "cuStreamBeginCapture"})
        CHECK_MESSAGE(!asked.contains(symbol), symbol);
}

TEST_CASE("every symbol is required, except those that a driver may lack")
{
    fake_library whole;
    driver_api api;
    REQUIRE_FALSE(whole.fill(api));
    for (const std::string& symbol : whole.asked_for) {
        if (optional_symbols().contains(symbol))
            continue;
        CAPTURE(symbol);
        fake_library library;
        library.left_out = {symbol};
        driver_api partial;
        const error_code ec = library.fill(partial);
        CHECK(ec == errc::library_too_old);
        CHECK(ec.message() == "fake: no symbol " + symbol);
    }
}

TEST_CASE("a driver without the optional symbols is usable, and its table says what is missing")
{
    for (const std::string& symbol : optional_symbols()) {
        CAPTURE(symbol);
        fake_library library;
        library.left_out = {symbol};
        driver_api api;
        CHECK_FALSE(library.fill(api));
        int missing = 0;
#define COUNT_MISSING(function) missing += api.function == nullptr ? 1 : 0;
        COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(COUNT_MISSING)
#undef COUNT_MISSING
        CHECK(missing == 1);
    }
}

TEST_CASE("an old driver is reported as too old, whatever symbols it lacks")
{
    fake_library library;
    library.version = 11080;
    library.left_out = {"cuMemPrefetchAsync_v2"};
    driver_api api;
    const error_code ec = library.fill(api);
    CHECK(ec == errc::library_too_old);
    CHECK(ec.message() == "/fake/libcuda.so.1: version 11.8, 12.4 or later is needed");

    library.left_out = {};
    // 12.3 is the last version without cuFuncGetParamInfo.
    library.version = 12030;
    CHECK(library.fill(api) == errc::library_too_old);
    library.version = 13010;
    CHECK_FALSE(library.fill(api));
    CHECK(api.version == 13010);
}

TEST_CASE("each driver error at the start is mapped to an errc")
{
    fake_library library;
    driver_api api;
    REQUIRE_FALSE(library.fill(api));
    CHECK_FALSE(start(api));

    library.init_result = CUDA_ERROR_NO_DEVICE;
    CHECK(start(api) == errc::no_device);
    CHECK(start(api).message() == "/fake/libcuda.so.1: the driver finds no GPU");
    library.init_result = CUDA_ERROR_STUB_LIBRARY;
    CHECK(start(api) == errc::library_missing);
    CHECK(start(api).message() == "/fake/libcuda.so.1: the toolkit's stub, not a driver");
    library.init_result = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    CHECK(start(api) == errc::backend_unavailable);
    CHECK(start(api).message().find("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH") != std::string::npos);

    library.version_result = CUDA_ERROR_STUB_LIBRARY;
    CHECK(library.fill(api) == errc::library_missing);
    library.version_result = CUDA_ERROR_INVALID_VALUE;
    CHECK(library.fill(api) == errc::backend_unavailable);
}

TEST_CASE("a failed load leaves no driver behind and is tried again")
{
    if (loaded_driver()) {
        MESSAGE("not run: the driver of this machine is already open");
        return;
    }
    {
        const chosen_library chosen(vendor_library::driver, "/no/such/libcuda.so.1");
        const auto loaded = driver_api::load();
        REQUIRE_FALSE(loaded);
        CHECK(loaded.error() == errc::library_missing);
    }
    CHECK(loaded_driver() == nullptr);
    const chosen_library chosen(vendor_library::driver, "libm.so.6");
    const auto loaded = driver_api::load();
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error() == errc::library_too_old);
    CHECK(loaded.error().message().ends_with("libm.so.6: no symbol cuDriverGetVersion"));
    CHECK(loaded_driver() == nullptr);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("loaded_table");

TEST_CASE("failed loads are retried, and a successful load is kept")
{
    loaded_table<int> table;
    int tries = 0;
    const auto make = [&]() -> result<std::unique_ptr<int>> {
        if (++tries < 3)
            return errc::library_missing;
        return std::make_unique<int>(7);
    };
    CHECK(table.peek() == nullptr);
    CHECK(table.get(make).error() == errc::library_missing);
    CHECK(table.get(make).error() == errc::library_missing);
    CHECK(table.peek() == nullptr);
    const int* made = table.get(make).value();
    CHECK(*made == 7);
    CHECK(table.get(make).value() == made);
    CHECK(table.peek() == made);
    CHECK(tries == 3);
    delete made;
}

TEST_CASE("threads that load at the same time get the same table")
{
    loaded_table<int> table;
    std::atomic<int> made{0};
    std::atomic<int> wrong{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            go.wait(false);
            const auto got = table.get(
                [&]() -> result<std::unique_ptr<int>> { return std::make_unique<int>(made.fetch_add(1) + 1); });
            if (!got || *got.value() != 1)
                ++wrong;
        });
    go = true;
    go.notify_all();
    for (std::thread& t : threads)
        t.join();
    CHECK(made == 1);
    CHECK(wrong == 0);
    delete table.peek();
}

TEST_SUITE_END();

} // namespace test_cuda_driver_api
