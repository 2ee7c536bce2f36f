#include "cuda/loader/dynamic_library.hpp"

#include "cuda/vendor_libraries.hpp"
#include "posix/environment.hpp"
#include "unit/cuda/chosen_library.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace test_cuda_dynamic_library {

namespace {

using namespace coaccel;
using namespace coaccel::cuda;

// Any library that exists on every machine.
constexpr const char* stand_in = "libm.so.6";

bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

std::string message_of(const std::string& path)
{
    const chosen_library chosen(vendor_library::cublas, path);
    const auto opened = dynamic_library::open(cublas_library);
    REQUIRE_FALSE(opened);
    CHECK(opened.error() == errc::library_missing);
    CHECK(opened.error() == fault::library);
    return opened.error().message();
}

struct temporary_file {
    explicit temporary_file(const std::string& text)
        : path(std::filesystem::temp_directory_path() / ("coaccel_" + std::to_string(::getpid()) + ".so"))
    {
        std::ofstream(path) << text;
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() { std::filesystem::remove(path); }

    std::filesystem::path path;
};

} // namespace

TEST_SUITE_BEGIN("dynamic_library");

TEST_CASE("the error for a missing file names the file and the loader's reason")
{
    const std::string message = message_of("/no/such/libcublas.so.13");
    CHECK(contains(message, "libcublas: tried /no/such/libcublas.so.13 ("));
    CHECK(contains(message, "No such file"));
    CHECK(message.find("/no/such") == message.rfind("/no/such"));
}

TEST_CASE("the error for an invalid library names the file and the loader's reason")
{
    const temporary_file text("these are words, and enough of them that the loader has something to look at\n");
    CHECK(contains(message_of(text.path.string()), "libcublas: tried " + text.path.string() + " ("));
    const temporary_file empty("");
    CHECK(contains(message_of(empty.path.string()), empty.path.string()));
    CHECK(contains(message_of(std::filesystem::temp_directory_path().string()), "libcublas: tried "));
}

TEST_CASE("the length of the error message is bounded")
{
    CHECK(message_of("/no/" + std::string(3000, 'x')).size() < 6500);
}

TEST_CASE("an opened library gives its path and its functions")
{
    const chosen_library chosen(vendor_library::driver, stand_in);
    auto opened = dynamic_library::open(driver_library);
    REQUIRE(opened);
    const dynamic_library& library = opened.value();
    CHECK(library.path().front() == '/');
    CHECK(contains(library.path(), stand_in));

    double (*function)(double) = nullptr;
    REQUIRE_FALSE(library.find(function, "cbrt"));
    CHECK(function(27.0) == doctest::Approx(3.0));
}

TEST_CASE("the error for a missing symbol names the symbol and the file, and the pointer is unchanged")
{
    const chosen_library chosen(vendor_library::driver, stand_in);
    auto opened = dynamic_library::open(driver_library);
    REQUIRE(opened);
    void (*function)() = nullptr;
    const error_code ec = opened.value().find(function, "cuNoSuchThing");
    CHECK(ec == errc::library_too_old);
    CHECK(ec.message() == opened.value().path() + ": no symbol cuNoSuchThing");
    CHECK((function == nullptr));
}

TEST_CASE("the environment variable selects the file when the program does not")
{
    ::setenv("COACCEL_LIBNVRTC", "/no/such/file", 1);
    (void)detail::copy_environment();
    const auto missing = dynamic_library::open(nvrtc_library);
    REQUIRE_FALSE(missing);
    CHECK(contains(missing.error().message(), "libnvrtc: tried /no/such/file ("));

    ::setenv("COACCEL_LIBNVRTC", stand_in, 1);
    (void)detail::copy_environment();
    const auto found = dynamic_library::open(nvrtc_library);
    ::unsetenv("COACCEL_LIBNVRTC");
    (void)detail::copy_environment();
    REQUIRE(found);
    CHECK(contains(found.value().path(), stand_in));
}

TEST_SUITE_END();

} // namespace test_cuda_dynamic_library
