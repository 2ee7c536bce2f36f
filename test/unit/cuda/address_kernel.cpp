#include "cuda/blas/address_kernel.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace test_cuda_address_kernel {

TEST_SUITE_BEGIN("address_kernel");

TEST_CASE("the assembler of CUDA accepts the kernels")
{
    const std::string ptxas = COACCEL_TEST_PTXAS;
    if (ptxas.empty()) {
        MESSAGE("not run: ptxas was not found");
        return;
    }
    const test::temporary_folder folder;
    const auto path = folder / "address_kernel.ptx";
    std::ofstream(path) << coaccel::cuda::address_kernel_source();
    // The oldest architecture of CUDA 13.
    const auto command = "'" + ptxas + "' -arch=sm_75 -o /dev/null '" + path + "'";
    CAPTURE(command);
    CHECK(std::system(command.c_str()) == 0);
}

TEST_SUITE_END();

} // namespace test_cuda_address_kernel
