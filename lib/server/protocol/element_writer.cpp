#include "server/protocol/element_writer.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace coaccel::server {
namespace {

template <class T>
void append_bytes(std::vector<std::byte>& out, const T& value)
{
    const std::size_t at = out.size();
    out.resize(at + sizeof value);
    std::memcpy(out.data() + at, &value, sizeof value);
}

/// From the text, because the number of the parser is not correctly rounded.
template <class T>
bool real_of(const json_number& n, T& value) noexcept
{
    switch (n.what) {
    case json_number::kind::signed_integer: value = static_cast<T>(n.i); return true;
    case json_number::kind::unsigned_integer: value = static_cast<T>(n.u); return true;
    case json_number::kind::real: break;
    }
    if (n.text.empty()) {
        value = static_cast<T>(n.d);
        return true;
    }
    const auto read = std::from_chars(n.text.data(), n.text.data() + n.text.size(), value);
    if (read.ec == std::errc())
        return true;
    // Too small is zero, too large is an error.
    if (read.ec != std::errc::result_out_of_range || !(std::abs(n.d) < 1))
        return false;
    value = std::copysign(T(0), static_cast<T>(n.d));
    return true;
}

template <class T>
bool append_real(std::vector<std::byte>& out, const json_number& n)
{
    T value{};
    if (!real_of(n, value))
        return false;
    append_bytes(out, value);
    return true;
}

template <class T>
bool append_small(std::vector<std::byte>& out, const json_number& n)
{
    float wide = 0;
    if (!real_of(n, wide))
        return false;
    // Not a constructor: those of fp8 give the largest value for what the type cannot hold.
    const T value = T::convert(wide, overflow_rule::nonfinite);
    const float held = static_cast<float>(value);
    if (std::isfinite(wide) != std::isfinite(held) || std::isinf(wide) != std::isinf(held))
        return false;
    append_bytes(out, value);
    return true;
}

template <class T>
bool append_integer(std::vector<std::byte>& out, const json_number& n)
{
    switch (n.what) {
    case json_number::kind::signed_integer:
        if (!std::in_range<T>(n.i))
            return false;
        append_bytes(out, static_cast<T>(n.i));
        return true;
    case json_number::kind::unsigned_integer:
        if (!std::in_range<T>(n.u))
            return false;
        append_bytes(out, static_cast<T>(n.u));
        return true;
    case json_number::kind::real: break;
    }
    // Such as 2.0 or 1e3. The bounds are powers of two, which doubles have exactly.
    const double d = n.d;
    constexpr double end = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    constexpr double begin = static_cast<double>(std::numeric_limits<T>::min());
    if (!(d >= begin && d < end) || std::trunc(d) != d)
        return false;
    append_bytes(out, static_cast<T>(d));
    return true;
}

template <class T>
constexpr append_number_fn appender_for() noexcept
{
    if constexpr (std::is_integral_v<T>)
        return append_integer<T>;
    else if constexpr (std::is_floating_point_v<T>)
        return append_real<T>;
    else if constexpr (std::is_same_v<T, std::complex<float>>)
        return append_real<float>;
    else if constexpr (std::is_same_v<T, std::complex<double>>)
        return append_real<double>;
    else
        return append_small<T>;
}

template <class... Ts>
append_number_fn appender_at(std::size_t index, type_list<Ts...>) noexcept
{
    constexpr append_number_fn all[] = {appender_for<Ts>()...};
    return index < sizeof...(Ts) ? all[index] : nullptr;
}

} // namespace

append_number_fn appender_of(dtype d) noexcept
{
    return appender_at(static_cast<std::size_t>(d) - 1, element_types{});
}

bool special_number(std::string_view text, json_number& out) noexcept
{
    out = {.what = json_number::kind::real};
    if (text == "NaN")
        out.d = std::numeric_limits<double>::quiet_NaN();
    else if (text == "Infinity")
        out.d = std::numeric_limits<double>::infinity();
    else if (text == "-Infinity")
        out.d = -std::numeric_limits<double>::infinity();
    else
        return false;
    return true;
}

} // namespace coaccel::server
