// A plug-in that was compiled for version 1 of the interface, in which functions have no version.
#include <coaccel/plugin/interface.hpp>

#include <cstddef>
#include <cstdint>

using coaccel::plugin::argument;
using coaccel::plugin::parameter;
using coaccel::plugin::stream;

namespace {

struct first_function {
    const char* name;
    void (*target)();
    int (*call)(void (*target)(), const stream& where, const argument* arguments, char* why, std::size_t room) noexcept;
    const parameter* parameters;
    std::uint32_t parameter_count;
    const void* next;
    /// Here a later interface has the version, so a library that reads it anyway finds this number.
    std::uint32_t not_a_version;
};

static_assert(offsetof(first_function, not_a_version) == offsetof(coaccel::plugin::function, version));

struct first_table {
    std::uint32_t version;
    const first_function* first;
};

int call(void (*)(), const stream&, const argument* arguments, char*, std::size_t) noexcept
{
    *static_cast<float*>(arguments[0].data) = 1;
    return 0;
}

void unused() {}

constexpr parameter parameters[] = {{coaccel::plugin::form::write, coaccel::plugin::type::f32, sizeof(float)}};
const first_function function{"fill_one", unused, call, parameters, 1, nullptr, 4711};
const first_table table{1, &function};

} // namespace

extern "C" __attribute__((visibility("default"))) const void* coaccel_plugin_v1()
{
    return &table;
}
