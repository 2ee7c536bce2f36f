#include "worker/worker_environment.hpp"

#include "unit/cuda/chosen_library.hpp"
#include "worker/child_process.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

using namespace coaccel;
using namespace coaccel::worker;
using cuda::vendor_library;

TEST_SUITE_BEGIN("worker_environment");

TEST_CASE("a library that the program has chosen takes the place of the one in the environment")
{
    struct row {
        vendor_library which;
        const char* variable;
    };
    for (const row& r :
         {row{vendor_library::driver, "COACCEL_LIBCUDA"}, row{vendor_library::cublas, "COACCEL_LIBCUBLAS"},
          row{vendor_library::nvrtc, "COACCEL_LIBNVRTC"}}) {
        const auto which = r.which;
        const char* const variable = r.variable;
        CAPTURE(variable);
        const auto named = [&](const std::vector<std::string>& environment) {
            std::vector<std::string> all;
            for (const auto& entry : environment)
                if (entry.starts_with(std::string(variable) + '='))
                    all.push_back(entry);
            return all;
        };
        const std::string beginning = std::string(variable) + '=';
        const auto* const value = std::getenv(variable);
        const std::string before = value ? value : "";
        for (const bool set : {false, true}) {
            CAPTURE(set);
            if (set)
                ::setenv(variable, "/of/the/environment", 1);
            else
                ::unsetenv(variable);
            const std::vector<std::string> unchosen(set ? 1 : 0, beginning + "/of/the/environment");
            CHECK(named(worker_environment()) == unchosen);
            {
                const chosen_library chosen(which, "/the/chosen one");
                CHECK(named(worker_environment()) == std::vector{beginning + "/the/chosen one"});
            }
            CHECK(named(worker_environment()) == unchosen);
        }
        if (value)
            ::setenv(variable, before.c_str(), 1);
        else
            ::unsetenv(variable);
    }
}

TEST_CASE("the rest is the minimal environment")
{
    CHECK(worker_environment() == child_process::minimal_environment());
}

TEST_SUITE_END();
