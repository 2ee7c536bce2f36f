// The plug-in of the plan in poison.hpp.
#include <coaccel/plugin/export.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace {

void twice(coaccel::plugin::stream, std::span<const float> x, std::span<float> y)
{
    // The values of test::poison.
    switch (static_cast<int>(x[0])) {
    case -1: std::abort();
    case -2: std::raise(SIGSEGV); break;
    case -3: ::_exit(3);
    case -4:
        for (;;)
            std::this_thread::sleep_for(std::chrono::hours(1));
    case -5: std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(x[1]))); break;
    default: break;
    }
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = 2 * x[i];
}

namespace plugin = coaccel::plugin;

int call_fatal(void (*)(), const plugin::stream& where, const plugin::argument* a, char*, std::size_t) noexcept
{
    twice(where, {static_cast<const float*>(a[0].data), a[0].count}, {static_cast<float*>(a[1].data), a[1].count});
    return 0;
}

/// Like "twice". But if the file of test::fatal_loads exists when the process begins, loading a plan that calls it ends
/// the process: the description of the parameters, with which the call is checked then, cannot be read.
struct fatal_function {
    fatal_function()
    {
        constexpr std::size_t page = 4096;
        void* const memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            std::abort();
        auto* const parameters = static_cast<plugin::parameter*>(memory);
        parameters[0] = {plugin::form::read, plugin::type::f32, sizeof(float)};
        parameters[1] = {plugin::form::write, plugin::type::f32, sizeof(float)};
        const std::string flag = "/tmp/coaccel-fatal-loads-" + std::to_string(::getppid());
        ::mprotect(memory, page, ::access(flag.c_str(), F_OK) == 0 ? PROT_NONE : PROT_READ);
        auto& table = plugin::detail::own_table();
        what = {"fatal", [] {}, &call_fatal, parameters, 2, table.first};
        table.first = &what;
    }

    plugin::function what{};
};

const fatal_function fatal;

} // namespace

COACCEL_PLUGIN_FUNCTION(twice)
