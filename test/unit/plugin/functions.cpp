// The plug-in of the tests, for the CPU. One for a GPU would differ only in its kernels.
#include "functions.hpp"

#include <coaccel/plugin/export.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

using coaccel::plugin::stream;

namespace {

void scale_add(stream, std::span<const float> x, std::span<float> y, float factor)
{
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] += factor * x[i];
}

void count_up(stream, std::int32_t* data, std::uint64_t n)
{
    for (std::uint64_t i = 0; i < n; ++i)
        data[i] = static_cast<std::int32_t>(i);
}

void tell_values(stream, std::span<double> told, point p, side s, bool flag, std::int64_t large, std::int8_t small)
{
    const double all[] = {p.x, p.y, double(int(s)), double(flag), double(large), double(small)};
    std::ranges::copy(all, told.begin());
}

void add_pair(stream, std::span<float> sum, pair_of_floats p)
{
    sum[0] = p.first + p.second;
}

void copy_double(stream, std::span<double> to, double value)
{
    to[0] = value;
}

// The plug-in's own class for 16-bit elements, as __half is.
struct sixteen {
    std::uint16_t bits;
};

void flip_sign(stream, std::span<sixteen> numbers)
{
    for (auto& n : numbers)
        n.bits ^= 0x8000;
}

void tell_backend(stream s, std::span<std::uint8_t> name, std::span<std::int32_t> on_gpu)
{
    std::memcpy(name.data(), s.backend, std::min(name.size(), std::strlen(s.backend) + 1));
    on_gpu[0] = s.on_gpu();
}

void nothing(stream) noexcept {}

void say(stream, int number)
{
    std::printf("a word from the plug-in: %d\n", number);
}

void fail(stream, int code)
{
    throw std::runtime_error("failed with " + std::to_string(code));
}

void fail_oddly(stream)
{
    throw 42;
}

void fail_at_length(stream)
{
    throw std::runtime_error(std::string(10000, 'x'));
}

// Version 3, and version 1 under another name.
void add_two(stream, std::span<float> y)
{
    for (float& v : y)
        v += 2;
}

void crash(stream)
{
    ::raise(SIGKILL);
}

COACCEL_PLUGIN_FUNCTION(scale_add)
COACCEL_PLUGIN_FUNCTION(count_up)
COACCEL_PLUGIN_FUNCTION(tell_values)
COACCEL_PLUGIN_FUNCTION(add_pair)
COACCEL_PLUGIN_FUNCTION(copy_double)
COACCEL_PLUGIN_FUNCTION(flip_sign)
COACCEL_PLUGIN_FUNCTION(tell_backend)
COACCEL_PLUGIN_FUNCTION(nothing)
COACCEL_PLUGIN_FUNCTION(say)
COACCEL_PLUGIN_FUNCTION(fail)
COACCEL_PLUGIN_FUNCTION(fail_oddly)
COACCEL_PLUGIN_FUNCTION(fail_at_length)
COACCEL_PLUGIN_FUNCTION(crash)
COACCEL_PLUGIN_FUNCTION_VERSION(add_two, 3)
COACCEL_PLUGIN_FUNCTION_AS("add_two of version 1", add_two)
COACCEL_PLUGIN_FUNCTION_VERSION_AS("add_two of the highest version", add_two, 0xffffffffu)
COACCEL_PLUGIN_FUNCTION_AS("a name of exactly as many characters as there is any room for..", nothing)

} // namespace
