#ifndef COACCEL_EXAMPLE_DEMO_QUESTIONS_HPP
#define COACCEL_EXAMPLE_DEMO_QUESTIONS_HPP

#include <string>
#include <string_view>
#include <vector>

namespace demo {

/// A request for the digits model, and the right answer.
struct question {
    std::string body;                 ///< The request in JSON.
    std::vector<float> probabilities; ///< Of the ten digits, computed without coaccel.

    /// Whether the reply to the request has these probabilities, up to rounding.
    bool is_right(std::string_view reply) const;
};

/// One question for each image of the test data in the folder example/digits/data. Throws std::runtime_error if a file
/// cannot be read.
std::vector<question> make_questions(const std::string& folder);

} // namespace demo

#endif
