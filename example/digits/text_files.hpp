#ifndef DIGITS_TEXT_FILES_HPP
#define DIGITS_TEXT_FILES_HPP

#include <cstddef>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace digits {

constexpr std::size_t pixels = 64;
constexpr std::size_t classes = 10;

/// Images one after another, with values from 0 to 16, and the digit of each.
struct images {
    std::vector<float> values;
    std::vector<int> digits;
};

/// Reads lines as README.md describes them. Empty: the file is missing or has another content.
inline std::optional<images> read_images(const std::string& file)
{
    std::ifstream in(file);
    images all;
    for (std::string line; std::getline(in, line);) {
        if (line.size() != 2 + pixels || line[0] < '0' || line[0] > '9' || line[1] != ' ')
            return std::nullopt;
        all.digits.push_back(line[0] - '0');
        for (const char c : line.substr(2)) {
            const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'g' ? c - 'a' + 10 : -1;
            if (value < 0)
                return std::nullopt;
            all.values.push_back(static_cast<float>(value));
        }
    }
    return all.digits.empty() ? std::nullopt : std::optional(std::move(all));
}

/// The layers of the perceptron.
struct weights {
    std::size_t hidden = 0;
    std::vector<float> first;       // pixels rows of `hidden` numbers
    std::vector<float> first_bias;  // hidden
    std::vector<float> second;      // `hidden` rows of `classes` numbers
    std::vector<float> second_bias; // classes
};

/// Reads what train.py writes. Empty: the file is missing or has another content.
inline std::optional<weights> read_weights(const std::string& file)
{
    std::ifstream in(file);
    std::map<std::string, std::vector<float>> arrays;
    for (std::string head, body; std::getline(in, head) && std::getline(in, body);) {
        std::istringstream numbers(body);
        auto& array = arrays[head.substr(0, head.find(' '))];
        for (float v; numbers >> v;)
            array.push_back(v);
    }
    weights w{arrays["first_bias"].size(), arrays["first"], arrays["first_bias"], arrays["second"],
              arrays["second_bias"]};
    const bool fits = w.hidden > 0 && w.first.size() == pixels * w.hidden && w.second.size() == w.hidden * classes &&
                      w.second_bias.size() == classes;
    return fits ? std::optional(std::move(w)) : std::nullopt;
}

} // namespace digits

#endif
