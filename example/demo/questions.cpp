#include "questions.hpp"

#include "../digits/text_files.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>

namespace demo {
namespace {

/// One layer: `weights` has a row for each input.
std::vector<float> layer(std::span<const float> inputs, const std::vector<float>& weights, std::vector<float> outputs)
{
    for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t k = 0; k < outputs.size(); ++k)
            outputs[k] += inputs[i] * weights[i * outputs.size() + k];
    return outputs;
}

std::vector<float> classify(const digits::weights& w, std::span<const float> image)
{
    auto hidden = layer(image, w.first, w.first_bias);
    for (auto& x : hidden)
        x = std::max(x, 0.0f);
    auto z = layer(hidden, w.second, w.second_bias);
    const float most = *std::ranges::max_element(z);
    for (auto& x : z)
        x = std::exp(x - most);
    const float sum = std::accumulate(z.begin(), z.end(), 0.0f);
    for (auto& x : z)
        x /= sum;
    return z;
}

std::string to_json(std::span<const float> image)
{
    std::string values;
    for (const float x : image)
        values += (values.empty() ? "" : ",") + std::to_string(static_cast<int>(x));
    return R"({"inputs":[{"name":"image","shape":[1,8,8],"datatype":"FP32","data":[)" + values + "]}]}";
}

} // namespace

bool question::is_right(std::string_view reply) const
{
    constexpr std::string_view begin = "\"data\":[";
    const auto found = reply.find(begin);
    if (found == reply.npos)
        return false;
    const char* at = reply.data() + found + begin.size();
    const char* const end = reply.data() + reply.size();
    return std::ranges::all_of(probabilities, [&](float expected) {
        float x = 0;
        const auto [next, error] = std::from_chars(at, end, x);
        at = next == end ? end : next + 1; // after the comma or the bracket
        return error == std::errc() && std::abs(x - expected) < 1e-4f;
    });
}

std::vector<question> make_questions(const std::string& folder)
{
    const auto weights = digits::read_weights(folder + "/weights.txt");
    const auto test = digits::read_images(folder + "/test.txt");
    if (!weights || !test)
        throw std::runtime_error("no data of the digits model in " + folder);
    std::vector<question> made;
    for (std::size_t i = 0; i < test->digits.size(); ++i) {
        const auto image = std::span(test->values).subspan(i * digits::pixels, digits::pixels);
        made.push_back({to_json(image), classify(*weights, image)});
    }
    return made;
}

} // namespace demo
