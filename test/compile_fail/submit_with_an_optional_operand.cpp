// A function given to async_submit has all its operands.
// expect: none of them optional or a list
#include <coaccel/coaccel.hpp>

#include <span>

void submit(coaccel::device& gpu, coaccel::optional_in<float> x)
{
    auto operation = gpu.async_submit(x, [](coaccel::native_stream, std::span<const float>) {});
}
