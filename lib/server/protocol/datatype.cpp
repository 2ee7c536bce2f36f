#include "server/protocol/datatype.hpp"

#include <array>

namespace coaccel::server {
namespace {

// In the order of dtype.
constexpr std::array<std::string_view, 16> datatype_names{
    "FP16",  "BF16",   "FP32",   "FP64",   "INT8",     "INT16",    "INT32",     "INT64",
    "UINT8", "UINT16", "UINT32", "UINT64", "FP8_E4M3", "FP8_E5M2", "COMPLEX64", "COMPLEX128",
};
static_assert(datatype_names.size() == element_types::size);

} // namespace

std::string_view datatype_name(dtype d) noexcept
{
    const auto index = static_cast<std::size_t>(d) - 1;
    return index < datatype_names.size() ? datatype_names[index] : "UNKNOWN";
}

std::optional<dtype> datatype_of(std::string_view name) noexcept
{
    for (std::size_t i = 0; i < datatype_names.size(); ++i)
        if (datatype_names[i] == name)
            return static_cast<dtype>(i + 1);
    return std::nullopt;
}

} // namespace coaccel::server
