// A plug-in with two functions of the same name.
#include <coaccel/plugin/export.hpp>

static void one(coaccel::plugin::stream) {}

COACCEL_PLUGIN_FUNCTION(one)
COACCEL_PLUGIN_FUNCTION(one)
