// A plug-in for a later version of the interface.
#include <coaccel/plugin/interface.hpp>

extern "C" __attribute__((visibility("default"))) const coaccel::plugin::table* coaccel_plugin_v1()
{
    static constexpr coaccel::plugin::table t{coaccel::plugin::interface_version + 1, nullptr};
    return &t;
}
