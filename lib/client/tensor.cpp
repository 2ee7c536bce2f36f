#include "client/tensor.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace coaccel::client {

std::size_t element_bytes(std::string_view datatype) noexcept
{
    static constexpr std::pair<std::string_view, std::size_t> sizes[] = {
        {"BOOL", 1},  {"UINT8", 1},    {"UINT16", 2},   {"UINT32", 4},    {"UINT64", 8},      {"INT8", 1},
        {"INT16", 2}, {"INT32", 4},    {"INT64", 8},    {"FP16", 2},      {"BF16", 2},        {"FP32", 4},
        {"FP64", 8},  {"FP8_E4M3", 1}, {"FP8_E5M2", 1}, {"COMPLEX64", 8}, {"COMPLEX128", 16},
    };
    const auto* found = std::ranges::find(sizes, datatype, &std::pair<std::string_view, std::size_t>::first);
    return found == std::end(sizes) ? 0 : found->second;
}

std::optional<std::uint64_t> tensor_bytes(std::string_view datatype, const std::vector<std::uint64_t>& shape) noexcept
{
    constexpr auto most = std::uint64_t(1) << 62;
    std::uint64_t bytes = element_bytes(datatype);
    if (bytes == 0)
        return std::nullopt;
    // An empty tensor is empty, however large its other dimensions are.
    if (std::ranges::find(shape, 0u) != shape.end())
        return 0;
    for (const auto d : shape) {
        if (d > most / bytes)
            return std::nullopt;
        bytes *= d;
    }
    return bytes;
}

std::string shape_text(const std::vector<std::uint64_t>& shape)
{
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + "]";
}

} // namespace coaccel::client
