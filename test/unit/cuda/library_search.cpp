#include "cuda/loader/library_search.hpp"

#include "cuda/vendor_libraries.hpp"
#include "posix/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

namespace test_cuda_library_search {

namespace {

using namespace coaccel::cuda;
using strings = std::vector<std::string>;
using variables = std::map<std::string, std::string>;
const auto& driver = driver_library;
const auto& cublas = cublas_library;
const auto& nvrtc = nvrtc_library;

/// A machine with these files and their folders.
search_world world_of(variables environment, strings files)
{
    search_world w;
    w.variable = [environment](const char* variable) {
        const auto at = environment.find(variable);
        return at == environment.end() ? std::string() : at->second;
    };
    w.names = [files](const std::string& folder) {
        std::set<std::string> names;
        for (const std::string& file : files)
            if (file.starts_with(folder + '/'))
                names.insert(file.substr(folder.size() + 1, file.find('/', folder.size() + 1) - folder.size() - 1));
        return strings(names.begin(), names.end());
    };
    w.exists = [files](const std::string& path) {
        return std::any_of(files.begin(), files.end(),
                           [&](const std::string& file) { return file == path || file.starts_with(path + '/'); });
    };
    return w;
}

const strings bare_cublas{"libcublas.so.13", "libcublas.so.12"};
const strings bare_nvrtc{"libnvrtc.so.13", "libnvrtc.so.12"};

strings operator+(strings a, const strings& b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct row {
    const char* name;
    const vendor_library_info& which;
    std::string chosen;
    variables environment;
    strings files;
    strings candidates;
};

void check(const std::vector<row>& rows)
{
    for (const row& r : rows) {
        CAPTURE(r.name);
        CHECK(plan_search(r.which, r.chosen, world_of(r.environment, r.files)).candidates == r.candidates);
    }
}

} // namespace

TEST_SUITE_BEGIN("library_search");

TEST_CASE("the program's choice precedes the environment, and the environment precedes the search")
{
    const strings toolkit{"/usr/local/cuda/lib64/libcublas.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"};
    const variables all{{"COACCEL_LIBCUDA", "/e/cuda"}, {"COACCEL_LIBCUBLAS", "/e/blas"}, {"COACCEL_LIBNVRTC", "rtc"}};
    check({
        {"driver chosen", driver, "/my/libcuda.so", all, toolkit, {"/my/libcuda.so"}},
        {"cublas chosen", cublas, "/my/blas", all, toolkit, {"/my/blas"}},
        {"nvrtc chosen", nvrtc, "nvrtc.so", all, toolkit, {"nvrtc.so"}},
        {"driver in the environment", driver, "", all, toolkit, {"/e/cuda"}},
        {"cublas in the environment", cublas, "", all, toolkit, {"/e/blas"}},
        {"nvrtc in the environment", nvrtc, "", all, toolkit, {"rtc"}},
        {"a variable of another library", nvrtc, "", {{"COACCEL_LIBCUBLAS", "/e"}}, {}, bare_nvrtc},
        {"a variable that is empty", cublas, "", {{"COACCEL_LIBCUBLAS", ""}}, {}, bare_cublas},
    });
}

TEST_CASE("the driver is loaded only as libcuda.so.1, by the loader")
{
    check({
        {"bare machine", driver, "", {}, {}, {"libcuda.so.1"}},
        {"never the stub, nor any file of a toolkit",
         driver,
         "",
         {{"CUDA_HOME", "/opt/cuda"}},
         {"/opt/cuda/lib64/libcuda.so.1", "/opt/cuda/lib64/stubs/libcuda.so", "/usr/local/cuda/lib64/libcuda.so"},
         {"libcuda.so.1"}},
    });
}

TEST_CASE("the loader is tried first, with the newer version first")
{
    check({
        {"cublas", cublas, "", {}, {}, bare_cublas},
        {"nvrtc", nvrtc, "", {}, {}, bare_nvrtc},
    });
}

TEST_CASE("toolkits are searched from the named one to the newest to the oldest")
{
    check({
        {"only the right library",
         cublas,
         "",
         {},
         {"/usr/local/cuda/lib64/libcublas.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
          "/usr/local/cuda/lib64/libcublas.so"},
         bare_cublas + strings{"/usr/local/cuda/lib64/libcublas.so.13"}},
        {"CUDA_HOME, CUDA_PATH, the default",
         nvrtc,
         "",
         {{"CUDA_PATH", "/path/"}, {"CUDA_HOME", "/home//"}},
         {"/usr/local/cuda/lib64/libnvrtc.so.13", "/path/lib64/libnvrtc.so.13", "/home/lib64/libnvrtc.so.12"},
         bare_nvrtc + strings{"/home/lib64/libnvrtc.so.12", "/path/lib64/libnvrtc.so.13",
                              "/usr/local/cuda/lib64/libnvrtc.so.13"}},
        {"both versions, in each of the folders",
         nvrtc,
         "",
         {{"CUDA_HOME", "/c"}},
         {"/c/lib/libnvrtc.so.12", "/c/lib/libnvrtc.so.13", "/c/lib64/libnvrtc.so.12", "/c/lib64/libnvrtc.so.13",
          "/c/targets/sbsa-linux/lib/libnvrtc.so.13", "/c/targets/x86_64-linux/lib/libnvrtc.so.13",
          "/c/targets/x86_64-linux/include/nvrtc.h"},
         bare_nvrtc + strings{"/c/lib64/libnvrtc.so.13", "/c/lib64/libnvrtc.so.12", "/c/lib/libnvrtc.so.13",
                              "/c/lib/libnvrtc.so.12", "/c/targets/x86_64-linux/lib/libnvrtc.so.13",
                              "/c/targets/sbsa-linux/lib/libnvrtc.so.13"}},
        {"numbers count as numbers",
         cublas,
         "",
         {},
         {"/usr/local/cuda-12.9/lib/libcublas.so.12", "/usr/local/cuda-13.0/lib/libcublas.so.13",
          "/usr/local/cuda-12.10/lib/libcublas.so.12", "/usr/local/cuda-12/lib/libcublas.so.12",
          "/usr/local/cuda-100.1/lib/libcublas.so.13", "/usr/local/cudnn-99/lib/libcublas.so.13"},
         bare_cublas + strings{"/usr/local/cuda-100.1/lib/libcublas.so.13", "/usr/local/cuda-13.0/lib/libcublas.so.13",
                               "/usr/local/cuda-12.10/lib/libcublas.so.12", "/usr/local/cuda-12.9/lib/libcublas.so.12",
                               "/usr/local/cuda-12/lib/libcublas.so.12"}},
        {"a toolkit named twice is tried once",
         cublas,
         "",
         {{"CUDA_HOME", "/usr/local/cuda"}, {"CUDA_PATH", "/usr/local/cuda/"}},
         {"/usr/local/cuda/lib64/libcublas.so.13"},
         bare_cublas + strings{"/usr/local/cuda/lib64/libcublas.so.13"}},
    });
}

TEST_CASE("wheels are searched last, from the active environment to the system's")
{
    const std::string cublas_wheel = "/nvidia/cublas/lib/libcublas.so.12";
    const std::string cu13 = "/nvidia/cu13/lib/libcublas.so.13";
    check({
        {"each place",
         cublas,
         "",
         {{"VIRTUAL_ENV", "/venv"}, {"CONDA_PREFIX", "/conda"}, {"HOME", "/home/me"}},
         {"/usr/lib/python3/dist-packages" + cublas_wheel, "/usr/local/lib/python3.11/dist-packages" + cublas_wheel,
          "/home/me/.local/lib/python3.11/site-packages" + cublas_wheel,
          "/conda/lib/python3.12/site-packages" + cublas_wheel, "/venv/lib/python3.13/site-packages" + cu13,
          "/usr/local/cuda/lib64/libcublas.so.12", "/home/me/lib/python3.11/site-packages" + cublas_wheel},
         bare_cublas + strings{"/usr/local/cuda/lib64/libcublas.so.12", "/venv/lib/python3.13/site-packages" + cu13,
                               "/conda/lib/python3.12/site-packages" + cublas_wheel,
                               "/home/me/.local/lib/python3.11/site-packages" + cublas_wheel,
                               "/usr/local/lib/python3.11/dist-packages" + cublas_wheel,
                               "/usr/lib/python3/dist-packages" + cublas_wheel}},
        {"the newer Python first, site before dist",
         cublas,
         "",
         {},
         {"/usr/lib/python3.9/site-packages" + cublas_wheel, "/usr/lib/python3.13/dist-packages" + cublas_wheel,
          "/usr/lib/python3.13/site-packages" + cu13, "/usr/lib/python2.7/site-packages" + cublas_wheel},
         bare_cublas + strings{"/usr/lib/python3.13/site-packages" + cu13,
                               "/usr/lib/python3.13/dist-packages" + cublas_wheel,
                               "/usr/lib/python3.9/site-packages" + cublas_wheel}},
        {"nvrtc has wheels of its own",
         nvrtc,
         "",
         {{"VIRTUAL_ENV", "/v"}},
         {"/v/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
          "/v/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
          "/v/lib/python3.11/site-packages/nvidia/cu12/lib/libnvrtc.so.12",
          "/v/lib/python3.11/site-packages/nvidia/cudnn/lib/libnvrtc.so.13"},
         bare_nvrtc + strings{"/v/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                              "/v/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                              "/v/lib/python3.11/site-packages/nvidia/cu12/lib/libnvrtc.so.12"}},
        {"an empty HOME is no place",
         nvrtc,
         "",
         {{"HOME", ""}},
         {"/.local/lib/python3.1/site-packages/nvidia/cu13/lib/libnvrtc.so.13"},
         bare_nvrtc},
    });
}

TEST_CASE("the plan lists the existing folders, including those without the library")
{
    const auto world = world_of({{"CUDA_HOME", "/gone"}}, {"/usr/local/cuda/lib64/libfft.so",
                                                           "/usr/lib/python3.11/dist-packages/nvidia/cublas/lib/x"});
    CHECK(plan_search(cublas, "", world).folders ==
          strings{"/usr/local/cuda/lib64", "/usr/lib/python3.11/dist-packages/nvidia/cublas/lib"});
    CHECK(plan_search(driver, "", world).folders.empty());
    CHECK(plan_search(cublas, "/x", world).folders.empty());
}

TEST_CASE("search_world::real() reads the environment and the file system")
{
    const search_world world = search_world::real();
    ::setenv("COACCEL_TEST_VARIABLE", "value", 1);
    (void)coaccel::detail::copy_environment();
    CHECK(world.variable("COACCEL_TEST_VARIABLE") == "value");
    ::unsetenv("COACCEL_TEST_VARIABLE");
    (void)coaccel::detail::copy_environment();
    CHECK(world.variable("COACCEL_TEST_VARIABLE").empty());

    const auto here = std::filesystem::temp_directory_path();
    CHECK(world.exists(here.string()));
    CHECK_FALSE(world.exists("/no/such/folder"));
    const strings names = world.names(here.parent_path().string());
    CHECK(std::find(names.begin(), names.end(), here.filename().string()) != names.end());
    CHECK(world.names("/no/such/folder").empty());
}

TEST_CASE("each library has its own name and variable")
{
    CHECK(to_string(vendor_library::driver) == "libcuda");
    CHECK(to_string(vendor_library::cublas) == "libcublas");
    CHECK(to_string(vendor_library::nvrtc) == "libnvrtc");
    CHECK(to_string(vendor_library::curand) == "libcurand");
    CHECK(to_string(vendor_library::cublaslt) == "libcublasLt");
    CHECK(to_string(static_cast<vendor_library>(vendor_libraries().size())) == "unknown");
    for (std::size_t i = 0; i < vendor_libraries().size(); ++i)
        CHECK(vendor_libraries()[i]->id == static_cast<vendor_library>(i));
    CHECK(variable_of(vendor_library::driver) == "COACCEL_LIBCUDA");
    CHECK(variable_of(vendor_library::cublas) == "COACCEL_LIBCUBLAS");
    CHECK(variable_of(vendor_library::nvrtc) == "COACCEL_LIBNVRTC");
    CHECK(variable_of(vendor_library::curand) == "COACCEL_LIBCURAND");
    CHECK(variable_of(vendor_library::cublaslt) == "COACCEL_LIBCUBLASLT");
}

TEST_CASE("use_library applies to one library, and an empty path resets it")
{
    constexpr auto first = vendor_library::cublas;
    constexpr auto second = vendor_library::nvrtc;
    use_library(first, "/a");
    use_library(second, "/b");
    CHECK(chosen_path(vendor_library::driver).empty());
    CHECK(chosen_path(first) == "/a");
    CHECK(chosen_path(second) == "/b");
    use_library(first, "");
    CHECK(chosen_path(first).empty());
    CHECK(chosen_path(second) == "/b");
    use_library(second, "");
}

TEST_SUITE_END();

} // namespace test_cuda_library_search
