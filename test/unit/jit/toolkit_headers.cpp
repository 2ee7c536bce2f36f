#include "cuda/jit/toolkit_headers.hpp"

#include "support.hpp"

#include <chrono>

namespace test_jit_toolkit_headers {

namespace {

using namespace coaccel;
namespace fs = std::filesystem;
using paths = std::vector<std::string>;

/// Creates a file and its parent folders.
void put(const std::string& path, const std::string& text)
{
    fs::create_directories(fs::path(path).parent_path());
    test::write_file(path, text);
}

std::string library_at(const std::string& path)
{
    put(path, "");
    return path;
}

constexpr const char* cuda_h = "/* text */\n#define CUDA_VERSION 13000\nmore";
constexpr const char* cccl_h = "#define CCCL_VERSION 3000001\r\n";

} // namespace

TEST_SUITE_BEGIN("cuda::toolkit_headers");

TEST_CASE("headers are found next to the library")
{
    const test::temporary_folder root;
    put(root / "include/cuda.h", cuda_h);
    put(root / "include/cccl/cuda/std/version", "");
    put(root / "include/cccl/cuda/std/__cccl/version.h", cccl_h);
    const auto found = cuda::find_toolkit_headers(library_at(root / "lib/libnvrtc.so.13"));
    CHECK(found.folders == paths{root / "include", root / "include/cccl"});
    CHECK(found.identity.starts_with("13000 3000001 "));
}

TEST_CASE("headers are found through a symbolic link to the library")
{
    const test::temporary_folder root;
    put(root / "real/include/cuda.h", cuda_h);
    const auto real = library_at(root / "real/lib/libnvrtc.so.13");
    fs::create_directories(root / "links/lib");
    fs::create_symlink(real, root / "links/lib/libnvrtc.so");
    const auto found = cuda::find_toolkit_headers(root / "links/lib/libnvrtc.so");
    REQUIRE(found.folders.size() == 1);
    CHECK(fs::equivalent(found.folders.front(), root / "real/include"));
}

TEST_CASE("CCCL is also found in the folder of the CUDA headers")
{
    const test::temporary_folder root;
    put(root / "include/cuda.h", cuda_h);
    put(root / "include/cuda/std/version", "");
    put(root / "include/cuda/std/__cccl/version.h", cccl_h);
    const auto found = cuda::find_toolkit_headers(library_at(root / "lib64/libnvrtc.so.12"));
    CHECK(found.folders == paths{root / "include"});
    CHECK(found.identity.starts_with("13000 3000001 "));
}

TEST_CASE("headers in the separate folders of Python wheels are found")
{
    const test::temporary_folder root;
    put(root / "nvidia/cuda_nvrtc/include/nvrtc.h", "");
    put(root / "nvidia/cuda_runtime/include/cuda.h", cuda_h);
    put(root / "nvidia/cuda_cccl/include/cuda/std/version", "");
    const auto found = cuda::find_toolkit_headers(library_at(root / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"));
    CHECK(found.folders == paths{root / "nvidia/cuda_runtime/include", root / "nvidia/cuda_cccl/include"});
}

TEST_CASE("an update with the same versions changes the identity")
{
    const test::temporary_folder root;
    put(root / "include/cuda.h", cuda_h);
    put(root / "include/cuda_fp16.h", "1");
    const auto library = library_at(root / "lib/libnvrtc.so.13");
    const auto identity = [&] { return cuda::find_toolkit_headers(library).identity; };
    const auto first = identity();
    CHECK(identity() == first);
    put(root / "include/cuda_fp16.h", "longer");
    const auto second = identity();
    CHECK(second != first);
    fs::last_write_time(root / "include/cuda.h", fs::file_time_type::clock::now() - std::chrono::hours(1));
    CHECK(identity() != second);
}

TEST_SUITE_END();

} // namespace test_jit_toolkit_headers
