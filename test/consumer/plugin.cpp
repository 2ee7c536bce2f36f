#include <coaccel/plugin/export.hpp>

static void twice(coaccel::plugin::stream, std::span<float> numbers)
{
    for (float& n : numbers)
        n *= 2;
}

COACCEL_PLUGIN_FUNCTION(twice)
