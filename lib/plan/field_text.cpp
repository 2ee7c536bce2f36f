#include "plan/plan_parts.hpp"

#include <array>
#include <charconv>
#include <complex>
#include <concepts>
#include <tuple>

namespace coaccel::detail {
namespace {

template <class T>
T load(const void* from) noexcept
{
    T made;
    std::memcpy(&made, from, sizeof(made));
    return made;
}

std::string number_text(std::integral auto value)
{
    return std::to_string(value);
}

std::string number_text(std::floating_point auto value)
{
    std::array<char, 64> room;
    return {room.data(), std::to_chars(room.data(), room.data() + room.size(), value).ptr};
}

template <class T>
std::string number_text(const std::complex<T>& value)
{
    return "(" + number_text(value.real()) + ", " + number_text(value.imag()) + ")";
}

template <class Format>
std::string number_text(small_float<Format> value)
{
    return number_text(float(value));
}

template <class... Ts>
std::string number_text(dtype type, const void* value, type_list<Ts...>)
{
    std::string made;
    ((type == dtype_v<Ts> ? void(made = number_text(load<Ts>(value))) : void()), ...);
    return made;
}

std::string enumerator_text(const op_field& f, const void* value)
{
    const char* name = f.enumerator ? f.enumerator(value) : nullptr;
    return name ? name : number_text(f.type, value, element_types{});
}

template <class E>
std::string enumerator_text(E value)
{
    op_field f{};
    describe_value<E>(f);
    return enumerator_text(f, &value);
}

std::string generator_text(const rand::generator& g, generator_numbers& numbers)
{
    const auto& o = g.options();
    return "generator " + std::to_string(numbers.number(g)) + " (algorithm = " + enumerator_text(o.algorithm) +
           ", seed = " + std::to_string(o.seed) + ", offset = " + std::to_string(o.offset) +
           ", ordering = " + enumerator_text(o.ordering) + ", dimensions = " + std::to_string(o.dimensions) + ")";
}

std::string bytes_text(const void* value, std::size_t bytes)
{
    constexpr char digits[] = "0123456789abcdef";
    const auto* at = static_cast<const unsigned char*>(value);
    std::string made = "bytes";
    for (std::size_t i = 0; i < bytes; ++i) {
        made += ' ';
        made += digits[at[i] >> 4];
        made += digits[at[i] & 15];
    }
    return made;
}

} // namespace

std::string value_text(const op_field& f, const void* value, generator_numbers& numbers)
{
    switch (f.holds) {
    case op_field::content::number: return number_text(f.type, value, element_types{});
    case op_field::content::boolean: return load<unsigned char>(value) != 0 ? "true" : "false";
    case op_field::content::enumeration: return enumerator_text(f, value);
    case op_field::content::generator: return generator_text(load<rand::generator>(value), numbers);
    case op_field::content::bytes: break;
    }
    return f.text ? f.text(value) : bytes_text(value, f.size);
}

} // namespace coaccel::detail
