// A plug-in with a function of the same name as one in another plug-in.
#include <coaccel/plugin/export.hpp>

static void scale_add(coaccel::plugin::stream) {}
static void lone(coaccel::plugin::stream) {}

COACCEL_PLUGIN_FUNCTION(lone)
COACCEL_PLUGIN_FUNCTION(scale_add)
