// The plug-in of the plan in poison.hpp.
#include <coaccel/plugin/export.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
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

} // namespace

COACCEL_PLUGIN_FUNCTION(twice)
