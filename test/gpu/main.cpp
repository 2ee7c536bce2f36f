#define DOCTEST_CONFIG_IMPLEMENT
#include "child.hpp"

#include <coaccel/device/system_info.hpp>

#include <doctest/doctest.h>

#include <iostream>

int main(int argc, char** argv)
{
    if (const int status = test::main_of_child(argc, argv); status >= 0)
        return status;
    if (coaccel::inspect_system().gpus.empty()) {
        std::cout << "no GPU here\n";
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
