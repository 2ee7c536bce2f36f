#include "server/protocol/element_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace coaccel::server {
namespace {

// The longest is a double, such as "-2.2250738585072014e-308", with its comma.
constexpr std::size_t most_characters = 32;

template <class T>
char* write_real(char* at, T value) noexcept
{
    if (!std::isfinite(value)) {
        const std::string_view text = std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
        std::memcpy(at, text.data(), text.size());
        return at + text.size();
    }
    return std::to_chars(at, at + most_characters, value).ptr;
}

template <class T>
void append_all(std::string& out, const std::byte* data, std::size_t count)
{
    // In pieces, so that the text grows with what is written and not with what could be.
    constexpr std::size_t piece = 64;
    for (std::size_t i = 0; i < count;) {
        char text[piece * most_characters];
        char* at = text;
        for (const std::size_t end = std::min(count, i + piece); i < end; ++i) {
            T value;
            std::memcpy(&value, data + i * sizeof(T), sizeof(T));
            if (i > 0)
                *at++ = ',';
            if constexpr (std::is_integral_v<T>)
                at = std::to_chars(at, at + most_characters, value).ptr;
            else if constexpr (std::is_floating_point_v<T>)
                at = write_real(at, value);
            else
                at = write_real(at, static_cast<float>(value));
        }
        out.append(text, at);
    }
}

template <class T>
void append_typed(std::string& out, std::span<const std::byte> elements)
{
    if constexpr (std::is_same_v<T, std::complex<float>>)
        append_all<float>(out, elements.data(), elements.size() / sizeof(float));
    else if constexpr (std::is_same_v<T, std::complex<double>>)
        append_all<double>(out, elements.data(), elements.size() / sizeof(double));
    else
        append_all<T>(out, elements.data(), elements.size() / sizeof(T));
}

template <class... Ts>
void append_at(std::size_t index, std::string& out, std::span<const std::byte> elements, type_list<Ts...>)
{
    using fn = void (*)(std::string&, std::span<const std::byte>);
    constexpr fn all[] = {append_typed<Ts>...};
    if (index < sizeof...(Ts))
        all[index](out, elements);
}

} // namespace

void append_elements(std::string& out, dtype type, std::span<const std::byte> elements)
{
    append_at(static_cast<std::size_t>(type) - 1, out, elements, element_types{});
}

} // namespace coaccel::server
