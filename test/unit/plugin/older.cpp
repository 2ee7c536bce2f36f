// A plug-in with an older version of a function of functions.cpp.
#include <coaccel/plugin/export.hpp>

static void add_two(coaccel::plugin::stream, std::span<float> y)
{
    for (float& v : y)
        v += 0.5f;
}

COACCEL_PLUGIN_FUNCTION_VERSION(add_two, 2)
