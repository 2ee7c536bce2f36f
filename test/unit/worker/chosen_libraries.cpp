#include "unit/cuda/chosen_library.hpp"
#include "worker/process/worker_environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace test_worker_chosen_libraries {

using namespace coaccel;
using namespace coaccel::worker;
using cuda::vendor_library;
using detail::environment;

TEST_SUITE_BEGIN("worker_environment");

TEST_CASE("a library chosen by the program replaces the one from the environment")
{
    struct row {
        vendor_library which;
        const char* variable;
    };
    for (const row& r :
         {row{vendor_library::driver, "COACCEL_LIBCUDA"}, row{vendor_library::cublas, "COACCEL_LIBCUBLAS"},
          row{vendor_library::nvrtc, "COACCEL_LIBNVRTC"}, row{vendor_library::curand, "COACCEL_LIBCURAND"},
          row{vendor_library::cublaslt, "COACCEL_LIBCUBLASLT"}}) {
        const auto which = r.which;
        const char* const variable = r.variable;
        CAPTURE(variable);
        const auto name = std::string(variable) + '=';
        for (const environment& of_process : {environment{}, environment{name + "/of/the/environment"}}) {
            CHECK(worker_environment(of_process) == of_process);
            {
                const chosen_library chosen(which, "/the/chosen one");
                CHECK(worker_environment(of_process) == environment{name + "/the/chosen one"});
            }
            CHECK(worker_environment(of_process) == of_process);
        }
    }
}

TEST_SUITE_END();

} // namespace test_worker_chosen_libraries
