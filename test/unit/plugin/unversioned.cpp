// A plug-in with a function whose version is 0, which means "any" in a call.
#include <coaccel/plugin/interface.hpp>

using coaccel::plugin::argument;
using coaccel::plugin::stream;

namespace {

int call(void (*)(), const stream&, const argument*, char*, std::size_t) noexcept
{
    return 0;
}

void unused() {}

constexpr coaccel::plugin::function function{"nothing", unused, call, nullptr, 0, nullptr, 0};
constexpr coaccel::plugin::table table{coaccel::plugin::interface_version, &function};

} // namespace

extern "C" __attribute__((visibility("default"))) const coaccel::plugin::table* coaccel_plugin_v1()
{
    return &table;
}
