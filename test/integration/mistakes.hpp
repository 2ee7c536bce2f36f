#ifndef COACCEL_TEST_INTEGRATION_MISTAKES_HPP
#define COACCEL_TEST_INTEGRATION_MISTAKES_HPP

#include <coaccel/core/error.hpp>

#include <doctest/doctest.h>

#include <regex>
#include <set>
#include <string>

namespace test {

/// The messages of mistakes that a test makes.
class collection {
public:
    template <class Result>
    void add(const Result& r)
    {
        REQUIRE_FALSE(r);
        add(r.error());
    }

    void add(const coaccel::error_code& ec)
    {
        static const std::regex process("worker [0-9]+");
        static const std::regex seconds("another [0-9]+ s");
        messages.insert(
            std::regex_replace(std::regex_replace(ec.message(), process, "worker PID"), seconds, "another N s"));
    }

    std::set<std::string> messages;
};

/// The section on plans.
void add_plan_mistakes(collection& c);

/// The sections on batchers and worker processes, and on faults.
void add_serving_mistakes(collection& c);

} // namespace test

#endif
