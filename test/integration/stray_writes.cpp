#include <coaccel/plugin/export.hpp>

#include <cstdint>

using coaccel::plugin::stream;

namespace {

/// Copies the first elements. If the first input is negative, it writes to the constant first.
void copy_or_scribble(stream, std::span<const float> x, std::span<const float> constant, std::span<float> y)
{
    if (x[0] < 0)
        for (std::size_t i = 0; i < constant.size(); ++i)
            const_cast<float*>(constant.data())[i] = -1;
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = x[i] + constant[i];
}

} // namespace

COACCEL_PLUGIN_FUNCTION(copy_or_scribble)
