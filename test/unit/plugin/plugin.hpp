#ifndef COACCEL_TEST_UNIT_PLUGIN_PLUGIN_HPP
#define COACCEL_TEST_UNIT_PLUGIN_PLUGIN_HPP

#include "../isolated/isolated.hpp"
#include "functions.hpp"

#include <coaccel/ops/plugin_call.hpp>

#define COACCEL_TEST_PLUGIN(name) COACCEL_TEST_PLUGINS name ".so"

namespace test {

inline coaccel::device_options with_plugin(coaccel::isolation where,
                                           const char* file = COACCEL_TEST_PLUGIN("functions"))
{
    auto o = where == coaccel::isolation::worker ? isolated_options() : pool_options();
    o.plugin = file;
    return o;
}

/// Calls `f` with a device that has the plug-in in this process, and one that has it in another.
template <class Function>
void on_each_device(Function f)
{
    for (const auto where : {coaccel::isolation::in_process, coaccel::isolation::worker}) {
        INFO("in a worker: ", where == coaccel::isolation::worker);
        isolated_fixture device(with_plugin(where));
        f(device);
    }
}

} // namespace test

#endif
