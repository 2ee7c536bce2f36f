#ifndef COACCEL_EXAMPLE_DEMO_PROTOCOL_HPP
#define COACCEL_EXAMPLE_DEMO_PROTOCOL_HPP

#include <cstddef>
#include <cstdint>

// A request is two matrices, a and b, column-major. A reply is an `answer`, followed by the matrix a * b when it is
// `product`. Both ends are on one machine, so numbers are sent in their memory representation.
namespace demo {

/// The number of rows and columns of each matrix.
inline constexpr std::size_t side = 24;
inline constexpr std::size_t elements = side * side;

enum class answer : std::uint32_t {
    product,
    failed,
};

} // namespace demo

#endif
