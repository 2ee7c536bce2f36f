#ifndef COACCEL_CORE_NEAR_NAME_HPP
#define COACCEL_CORE_NEAR_NAME_HPP

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// The number of characters to insert, remove or exchange in `a` to get `b`.
inline std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t exchanged = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({exchanged, diagonal + 1, row[j] + 1});
        }
    }
    return row[b.size()];
}

/// "; did you mean NAME?" for the name that `text` resembles, or that ends with it after a dot; otherwise empty.
inline std::string suggestion(std::string_view text, std::span<const std::string_view> names)
{
    std::string_view best;
    std::size_t least = text.size() / 3 + 1;
    for (const std::string_view name : names) {
        const bool is_last_part = !text.empty() && name.ends_with("." + std::string(text));
        const std::size_t distance = is_last_part ? 0 : edit_distance(text, name);
        if (distance < least) {
            least = distance;
            best = name;
        }
    }
    return best.empty() ? std::string() : "; did you mean " + std::string(best) + "?";
}

} // namespace coaccel::detail

#endif
