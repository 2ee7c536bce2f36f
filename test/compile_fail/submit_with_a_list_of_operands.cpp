// Each operand of a function given to async_submit is an argument of its own.
// expect: none of them optional or a list
#include <coaccel/coaccel.hpp>

#include <array>

void submit(coaccel::device& gpu, std::array<coaccel::in<float>, 2> x)
{
    auto operation = gpu.async_submit(x, [](coaccel::native_stream) {});
}
