// A plug-in that has two functions of one name.
#include <coaccel/plugin/export.hpp>

static void one(coaccel::plugin::stream) {}

COACCEL_PLUGIN_FUNCTION(one)
COACCEL_PLUGIN_FUNCTION(one)
