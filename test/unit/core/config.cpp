#include <coaccel/core/config.hpp>

#include <doctest/doctest.h>

#include <string>

namespace test_core_config {

TEST_SUITE_BEGIN("config");

TEST_CASE("the version string agrees with the version numbers")
{
    const auto text = std::to_string(COACCEL_VERSION_MAJOR) + '.' + std::to_string(COACCEL_VERSION_MINOR) + '.' +
                      std::to_string(COACCEL_VERSION_PATCH);
    CHECK(text == COACCEL_VERSION_STRING);
}

TEST_SUITE_END();

} // namespace test_core_config
