// The function of poisoned_request.cpp: a plug-in, which runs in the worker process.
#include <coaccel/plugin/export.hpp>

#include <cstdint>

namespace {

//[poison_function
// Looks up rows of a table. It does not check the indices, which come from the request.
void look_up(coaccel::plugin::stream, std::span<const float> table, std::span<const std::int64_t> indices,
             std::span<float> rows)
{
    const std::size_t width = rows.size() / indices.size();
    for (std::size_t i = 0; i < indices.size(); ++i)
        for (std::size_t k = 0; k < width; ++k)
            rows[i * width + k] =
                table.data()[indices[i] * static_cast<std::int64_t>(width) + static_cast<std::int64_t>(k)];
}
//]

} // namespace

COACCEL_PLUGIN_FUNCTION(look_up)
