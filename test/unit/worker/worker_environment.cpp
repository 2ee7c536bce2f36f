#include "worker/process/worker_environment.hpp"

#include <doctest/doctest.h>

namespace test_worker_worker_environment {

using namespace coaccel;
using namespace coaccel::worker;
using detail::environment;

TEST_SUITE_BEGIN("worker_environment");

TEST_CASE("a worker gets only the environment variables that it needs")
{
    const environment needed = {"PATH=/bin:/usr/bin",      "HOME=/home/me",           "LD_LIBRARY_PATH=/opt/lib",
                                "COACCEL_TEST_KEPT=a=b",   "CUDA_TEST_KEPT=",         "NVIDIA_TEST_KEPT=1",
                                "VIRTUAL_ENV=/some/where", "CONDA_PREFIX=/else/where"};
    auto all = needed;
    for (const char* other :
         {"PATHS=1", "MY_CUDA_TEST=1", "LD_PRELOAD=/some.so", "LD_AUDIT=/some.so", "SECRET=1", "=", "CUDA"})
        all.insert(all.begin() + 1, other);
    CHECK(needed_variables(all) == needed);
    CHECK(needed_variables({}).empty());
}

TEST_CASE("a worker of a process with elevated rights gets no environment variables of the user")
{
    const char* const variables[] = {"PATH=/evil", "LD_LIBRARY_PATH=/evil", "COACCEL_LIBCUDA=/evil.so",
                                     "CUDA_HOME=/evil", nullptr};
    CHECK(worker_environment(detail::copy_variables(variables, detail::rights::same)).size() == 4);
    CHECK(worker_environment(detail::copy_variables(variables, detail::rights::elevated)).empty());
}

TEST_SUITE_END();

} // namespace test_worker_worker_environment
