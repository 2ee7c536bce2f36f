#include "cuda/jit/toolkit_headers.hpp"

#include "posix/environment.hpp"
#include "posix/file.hpp"

#include <filesystem>
#include <fstream>
#include <string_view>

namespace coaccel::cuda {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& p)
{
    std::error_code ignored;
    return fs::exists(p, ignored);
}

std::vector<fs::path> candidates(const std::string& nvrtc_path)
{
    std::vector<fs::path> found;
    std::error_code failed;
    const auto real = fs::canonical(nvrtc_path, failed);
    for (const auto& library : {fs::path(nvrtc_path), real}) {
        if (!library.has_parent_path())
            continue;
        const auto root = library.parent_path().parent_path();
        found.push_back(root / "include");
        // Python wheels use one folder for each part of the toolkit.
        found.push_back(root.parent_path() / "cuda_runtime/include");
        found.push_back(root.parent_path() / "cu13/include");
    }
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
        if (const auto value = detail::environment_value(variable); !value.empty())
            found.push_back(fs::path(value) / "include");
    found.emplace_back("/usr/local/cuda/include");
    return found;
}

/// The value of a macro near the beginning of a header.
std::string macro_value(const fs::path& file, std::string_view macro)
{
    std::string text(32 << 10, '\0');
    std::ifstream stream(file, std::ios::binary);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    const auto line = std::string("#define ").append(macro).append(" ");
    const auto at = text.find(line);
    if (at == text.npos)
        return {};
    return text.substr(at + line.size(), text.find_first_of("\r\n", at) - at - line.size());
}

void add_cccl(toolkit_headers& to, const fs::path& include)
{
    // CCCL is in include/cccl since CUDA 13, in the same folder before that, and in its own folder with wheels.
    for (const auto& folder : {include / "cccl", include, include.parent_path().parent_path() / "cuda_cccl/include"}) {
        if (!is_there(folder / "cuda/std/version"))
            continue;
        if (folder != include)
            to.folders.push_back(folder.string());
        to.identity += " " + macro_value(folder / "cuda/std/__cccl/version.h", "CCCL_VERSION");
        return;
    }
}

} // namespace

toolkit_headers find_toolkit_headers(const std::string& nvrtc_path)
{
    toolkit_headers found;
    for (const auto& folder : candidates(nvrtc_path)) {
        if (!is_there(folder / "cuda.h"))
            continue;
        found.folders.push_back(folder.string());
        found.identity = macro_value(folder / "cuda.h", "CUDA_VERSION");
        add_cccl(found, folder);
        // An update of the toolkit may replace its files without changing the version.
        for (const char* header : {"cuda.h", "cuda_fp16.h"})
            found.identity += " " + detail::file_stamp((folder / header).string());
        break;
    }
    return found;
}

} // namespace coaccel::cuda
