#ifndef COACCEL_CORE_UNIT_TEXT_HPP
#define COACCEL_CORE_UNIT_TEXT_HPP

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coaccel::detail {

/// A unit in the text of an option.
struct unit {
    std::string_view name;
    std::uint64_t size;
};

// From the largest to the smallest, so that a number is written with the first unit that divides it.
inline constexpr unit time_units[] = {
    {"min", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1},
};
inline constexpr unit byte_units[] = {
    {"G", std::uint64_t(1) << 30}, {"M", std::uint64_t(1) << 20}, {"K", 1024}, {"", 1}};

/// The number that the whole text is; empty if it is something else.
template <class Number>
std::optional<Number> number(std::string_view text)
{
    Number value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    return ec == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// A number with one of the units after it, such as 64M; empty if the text is something else or does not fit.
inline std::optional<std::uint64_t> with_unit(std::string_view text, std::span<const unit> units)
{
    const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto value = number<std::uint64_t>(text.substr(0, digits));
    const auto named = std::ranges::find(units, text.substr(digits), &unit::name);
    if (!value || named == units.end() || *value > ~std::uint64_t(0) / named->size)
        return std::nullopt;
    return *value * named->size;
}

/// The number with the largest unit that divides it.
inline std::string with_unit(std::uint64_t value, std::span<const unit> units)
{
    const auto fits = std::ranges::find_if(units, [value](const unit& u) { return value % u.size == 0; });
    // Every unit divides zero.
    const unit& u = value == 0 ? units.back() : *fits;
    return std::to_string(value / u.size) + std::string(u.name);
}

} // namespace coaccel::detail

#endif
