#ifndef COACCEL_TEST_UNIT_JIT_SUPPORT_HPP
#define COACCEL_TEST_UNIT_JIT_SUPPORT_HPP

#include "jit/image.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/ops/jit.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace test {

inline std::string read_file(const std::string& path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_file(const std::string& path, const std::string& text)
{
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// The number of files in a folder.
inline std::size_t count_files(const std::string& folder)
{
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder))
        ++n;
    return n;
}

/// Makes a kernel with this symbol, without a compiler.
inline coaccel::jit::kernel make_kernel(const coaccel::jit::compile_options& options, std::string symbol,
                                        std::string code = "code")
{
    auto made = coaccel::jit::make_kernel(options, {std::move(symbol), std::move(code), {}});
    REQUIRE(made.has_value());
    return std::move(made).value();
}

} // namespace test

#endif
