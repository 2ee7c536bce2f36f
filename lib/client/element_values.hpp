#ifndef COACCEL_CLIENT_ELEMENT_VALUES_HPP
#define COACCEL_CLIENT_ELEMENT_VALUES_HPP

#include <coaccel/core/bfloat16.hpp>
#include <coaccel/core/half.hpp>

#include <cstdint>
#include <string_view>

namespace coaccel::client {

/// Calls `f` with a value of the C++ type of the datatype. False: JSON has no numbers for it.
template <class Function>
bool with_element_type(std::string_view datatype, Function f)
{
    if (datatype == "BOOL" || datatype == "UINT8")
        f(std::uint8_t());
    else if (datatype == "UINT16")
        f(std::uint16_t());
    else if (datatype == "UINT32")
        f(std::uint32_t());
    else if (datatype == "UINT64")
        f(std::uint64_t());
    else if (datatype == "INT8")
        f(std::int8_t());
    else if (datatype == "INT16")
        f(std::int16_t());
    else if (datatype == "INT32")
        f(std::int32_t());
    else if (datatype == "INT64")
        f(std::int64_t());
    else if (datatype == "FP16")
        f(half());
    else if (datatype == "BF16")
        f(bfloat16());
    else if (datatype == "FP32")
        f(float());
    else if (datatype == "FP64")
        f(double());
    else
        return false;
    return true;
}

} // namespace coaccel::client

#endif
