#ifndef COACCEL_EXAMPLE_DEMO_PROTOCOL_HPP
#define COACCEL_EXAMPLE_DEMO_PROTOCOL_HPP

#include <cstddef>
#include <cstdint>

// A request is n, then the n by n matrices a and b, column-major. A reply is an `answer`, followed by the matrix a * b
// when it is `product`. Both ends are on one machine, so numbers are sent in their memory representation.
namespace demo {

using size_type = std::uint32_t;

inline constexpr size_type max_n = 24;

enum class answer : std::uint32_t {
    product,
    /// The context was lost during the request. The same request may succeed when repeated.
    again,
    refused,
};

constexpr std::size_t elements(size_type n) noexcept
{
    return std::size_t(n) * n;
}

} // namespace demo

#endif
