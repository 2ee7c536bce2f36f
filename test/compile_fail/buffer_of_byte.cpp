// The elements of a buffer must have a dtype.
// expect: constraint
// expect: element<T>|does not satisfy 'element'
#include <coaccel/core/buffer.hpp>

#include <cstddef>

coaccel::buffer<std::byte> bytes;
