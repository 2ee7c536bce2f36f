#ifndef COACCEL_SERVER_PROTOCOL_ELEMENT_WRITER_HPP
#define COACCEL_SERVER_PROTOCOL_ELEMENT_WRITER_HPP

#include <coaccel/core/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace coaccel::server {

/// A number of a JSON text. The text is exact; the kind tells how it was written.
struct json_number {
    enum class kind : std::uint8_t { signed_integer, unsigned_integer, real };

    kind what = kind::signed_integer;
    std::int64_t i = 0;
    std::uint64_t u = 0;
    /// Only rounded to a few units in the last place, as the parser does it.
    double d = 0;
    std::string_view text{};
};

/// Appends the number as an element of a real type, or as one half of a complex one, correctly rounded. False, and
/// nothing is appended, if the type cannot hold it: it is out of range, or has decimals for an integer type.
using append_number_fn = bool (*)(std::vector<std::byte>& out, const json_number& n);

/// Null for a value that is not a dtype.
append_number_fn appender_of(dtype d) noexcept;

/// How many JSON numbers make one element: 2 for complex types, real part first, else 1.
constexpr std::size_t numbers_in(dtype d) noexcept
{
    return is_complex(d) ? 2 : 1;
}

/// The texts that stand for numbers that JSON does not have: "NaN", "Infinity" and "-Infinity".
bool special_number(std::string_view text, json_number& out) noexcept;

} // namespace coaccel::server

#endif
