#include "cuda/vendor_libraries.hpp"

#include <cctype>

namespace coaccel::cuda {
namespace {

#define COACCEL_ADDRESS(name) &name##_library,
constexpr const vendor_library_info* vendor_infos[] = {COACCEL_VENDOR_LIBRARIES(COACCEL_ADDRESS)};
#undef COACCEL_ADDRESS

} // namespace

std::span<const vendor_library_info* const> vendor_libraries() noexcept
{
    return vendor_infos;
}

std::string variable_of(vendor_library which)
{
    std::string variable = "COACCEL_";
    for (const char c : to_string(which))
        variable.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    return variable;
}

} // namespace coaccel::cuda
