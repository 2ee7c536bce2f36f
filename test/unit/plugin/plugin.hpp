#ifndef COACCEL_TEST_UNIT_PLUGIN_PLUGIN_HPP
#define COACCEL_TEST_UNIT_PLUGIN_PLUGIN_HPP

#include "functions.hpp"
#include "integration/isolated.hpp"

#include <coaccel/ops/plugin.hpp>

#define COACCEL_TEST_PLUGIN(name) COACCEL_TEST_PLUGINS name ".so"

namespace test {

inline coaccel::device_options with_plugin(coaccel::isolation where,
                                           const char* file = COACCEL_TEST_PLUGIN("functions"))
{
    auto o = where == coaccel::isolation::worker ? isolated_options() : pool_options();
    o.plugin = file;
    return o;
}

/// Calls `f` with a device that runs the plug-in in this process, and with one that runs it in a worker process.
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
