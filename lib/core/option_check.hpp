#ifndef COACCEL_CORE_OPTION_CHECK_HPP
#define COACCEL_CORE_OPTION_CHECK_HPP

#include <coaccel/core/error.hpp>

#include <initializer_list>

namespace coaccel::detail {

struct option_rule {
    bool holds;
    /// What is asked of which option.
    const char* text;
};

/// errc::invalid_option with the text of the first rule that does not hold.
inline error_code check_options(std::initializer_list<option_rule> rules) noexcept
{
    for (const auto& r : rules) {
        if (r.holds)
            continue;
        try {
            return note_error(errc::invalid_option, r.text);
        } catch (...) {
            return errc::invalid_option;
        }
    }
    return {};
}

} // namespace coaccel::detail

#endif
