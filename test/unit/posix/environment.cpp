#include "posix/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

namespace test_posix_environment {

using namespace coaccel::detail;

TEST_SUITE_BEGIN("environment");

TEST_CASE("with elevated rights only the selection of GPUs is read from the environment")
{
    const char* const variables[] = {"PATH=/bin", "COACCEL_LIBCUDA=/home/user/evil.so", "EMPTY=", nullptr};
    CHECK(copy_variables(variables, rights::same) ==
          environment{"PATH=/bin", "COACCEL_LIBCUDA=/home/user/evil.so", "EMPTY="});
    CHECK(copy_variables(variables, rights::elevated).empty());
    const char* const choice[] = {"CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES_FILE=/evil", "CUDA_PATH=/evil",
                                  "CUDA_DEVICE_ORDER=PCI_BUS_ID", nullptr};
    CHECK(copy_variables(choice, rights::elevated) ==
          environment{"CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"});
    CHECK(copy_variables(nullptr, rights::same).empty());
    // This process was started without elevated rights.
    CHECK(rights_of_process() == rights::same);
}

TEST_CASE("a value comes from the latest copy, regardless of later changes to the variable")
{
    ::setenv("COACCEL_TEST_VALUE", "first=1", 1);
    const auto copy = copy_environment();
    CHECK(std::ranges::count(*copy, "COACCEL_TEST_VALUE=first=1") == 1);
    ::setenv("COACCEL_TEST_VALUE", "second", 1);
    CHECK(environment_value("COACCEL_TEST_VALUE") == "first=1");
    CHECK(environment_value("COACCEL_TEST_VAL").empty());
    CHECK(environment_value("COACCEL_TEST_VALUE_2").empty());
    ::unsetenv("COACCEL_TEST_VALUE");
    (void)copy_environment();
    CHECK(environment_value("COACCEL_TEST_VALUE").empty());
    CHECK(std::ranges::count(*copy, "COACCEL_TEST_VALUE=first=1") == 1);
}

TEST_SUITE_END();

} // namespace test_posix_environment
