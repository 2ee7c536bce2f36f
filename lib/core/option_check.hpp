#ifndef COACCEL_CORE_OPTION_CHECK_HPP
#define COACCEL_CORE_OPTION_CHECK_HPP

#include <coaccel/core/error.hpp>

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace coaccel::detail {

/// The value of an option, for messages. It becomes a text only when a rule does not hold.
class option_value {
public:
    template <std::signed_integral T>
    constexpr option_value(T v) noexcept : what_(kind::whole), whole_(v)
    {}

    template <std::unsigned_integral T>
    constexpr option_value(T v) noexcept : what_(kind::natural), natural_(v)
    {}

    template <class E>
        requires std::is_enum_v<E>
    constexpr option_value(E v) noexcept : option_value(static_cast<std::underlying_type_t<E>>(v))
    {}

    constexpr option_value(double v) noexcept : what_(kind::fraction), fraction_(v) {}

    constexpr option_value(std::chrono::nanoseconds v) noexcept : what_(kind::time), whole_(v.count()) {}

    std::string text() const
    {
        switch (what_) {
        case kind::whole: return std::to_string(whole_);
        case kind::natural: return std::to_string(natural_);
        case kind::fraction: {
            char room[32];
            return {room, std::to_chars(room, room + sizeof room, fraction_).ptr};
        }
        case kind::time: return time_text();
        }
        return {};
    }

private:
    enum class kind : std::uint8_t { whole, natural, fraction, time };

    std::string time_text() const
    {
        if (whole_ == 0)
            return "0";
        if (whole_ % 1'000'000'000 == 0)
            return std::to_string(whole_ / 1'000'000'000) + " s";
        if (whole_ % 1'000'000 == 0)
            return std::to_string(whole_ / 1'000'000) + " ms";
        return whole_ % 1'000 == 0 ? std::to_string(whole_ / 1'000) + " us" : std::to_string(whole_) + " ns";
    }

    kind what_;
    union {
        std::int64_t whole_;
        std::uint64_t natural_;
        double fraction_;
    };
};

struct option_rule {
    bool holds;
    const char* field;
    option_value value;
    /// The rule. The message is "FIELD is VALUE; RULE".
    const char* rule;
};

inline constexpr const char* not_negative = "it must not be negative";
inline constexpr const char* above_zero = "it must be above zero";
inline constexpr const char* an_enumerator = "it must be one of its enumerators";

/// errc::invalid_option with `text`; the plain code if there is no memory for the message.
inline error_code option_error(const char* text) noexcept
{
    try {
        return make_error_with_message(errc::invalid_option, text);
    } catch (...) {
        return errc::invalid_option;
    }
}

/// errc::invalid_option for the first rule that does not hold.
inline error_code check_options(std::initializer_list<option_rule> rules) noexcept
{
    for (const auto& r : rules) {
        if (r.holds)
            continue;
        try {
            return make_error_with_message(errc::invalid_option,
                                           std::string(r.field) + " is " + r.value.text() + "; " + r.rule);
        } catch (...) {
            return errc::invalid_option;
        }
    }
    return {};
}

} // namespace coaccel::detail

#endif
