#ifndef COACCEL_TELEMETRY_UTF8_TEXT_HPP
#define COACCEL_TELEMETRY_UTF8_TEXT_HPP

#include <boost/nowide/utf/utf.hpp>

#include <string_view>

namespace coaccel::detail {

/// What replaces bytes that are not UTF-8: U+FFFD.
constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// Calls fn(code point, its bytes) for each character. A byte that is not part of one counts as U+FFFD.
template <class Fn>
void for_each_character(std::string_view text, Fn fn)
{
    using utf8 = boost::nowide::utf::utf_traits<char>;
    for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
        const char* next = at;
        const auto c = utf8::decode(next, end);
        if (!boost::nowide::utf::is_valid_codepoint(c)) {
            // In a malformed sequence, the byte after the first may begin another character.
            fn(char32_t{0xfffd}, replacement_character);
            ++at;
            continue;
        }
        fn(static_cast<char32_t>(c), std::string_view(at, static_cast<std::size_t>(next - at)));
        at = next;
    }
}

} // namespace coaccel::detail

#endif
