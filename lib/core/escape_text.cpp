#include "core/escape_text.hpp"

#include <boost/nowide/utf/utf.hpp>

#include <algorithm>
#include <iterator>

namespace coaccel::detail {
namespace {

using code_point = boost::nowide::utf::code_point;
using utf8 = boost::nowide::utf::utf_traits<char>;

struct range {
    code_point first;
    code_point last;
};

// Control characters, line separators, and characters that change the text direction or are invisible.
constexpr range unprintable[] = {
    {0x00, 0x08},     {0x0a, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xfdd0, 0xfdef}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
};

bool is_printable(code_point c) noexcept
{
    // The last two code points of each plane are not characters.
    return boost::nowide::utf::is_valid_codepoint(c) && (c & 0xfffe) != 0xfffe &&
           std::ranges::none_of(unprintable, [c](const range& r) { return r.first <= c && c <= r.last; });
}

void append_escape(std::string& out, char c)
{
    constexpr char digits[] = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(c);
    for (const char part : {'\\', 'x', digits[code >> 4], digits[code & 15]})
        out.push_back(part);
}

} // namespace

std::string escape_text(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
        const char* next = at;
        const auto c = utf8::decode(next, end);
        if (is_printable(c)) {
            out.append(at, next);
            at = next;
            continue;
        }
        // In a malformed sequence, the byte after the first may begin another character.
        const char* const stop = boost::nowide::utf::is_valid_codepoint(c) ? next : at + 1;
        for (; at != stop; ++at)
            append_escape(out, *at);
    }
    return out;
}

std::size_t whole_characters(std::string_view text) noexcept
{
    constexpr std::size_t longest = 4;
    for (std::size_t n = 1; n < longest && n <= text.size(); ++n) {
        const char* last = text.data() + text.size() - n;
        if (utf8::is_trail(*last))
            continue;
        const bool cut = utf8::decode(last, text.data() + text.size()) == boost::nowide::utf::incomplete;
        return cut ? text.size() - n : text.size();
    }
    return text.size();
}

} // namespace coaccel::detail
