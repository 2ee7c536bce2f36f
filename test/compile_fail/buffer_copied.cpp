// A buffer can be moved but not copied.
// expect: use of deleted function|call to implicitly-deleted copy constructor
#include <coaccel/core/buffer.hpp>

coaccel::buffer<float> twice(const coaccel::buffer<float>& b)
{
    return b;
}
