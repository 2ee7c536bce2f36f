// A plug-in that has a function of a name which another has too.
#include <coaccel/plugin/export.hpp>

static void scale_add(coaccel::plugin::stream) {}
static void lone(coaccel::plugin::stream) {}

COACCEL_PLUGIN_FUNCTION(lone)
COACCEL_PLUGIN_FUNCTION(scale_add)
