#ifndef COACCEL_TEST_INTEGRATION_SHARED_MAPPINGS_HPP
#define COACCEL_TEST_INTEGRATION_SHARED_MAPPINGS_HPP

#include "inventory.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

// Memory that outlives workers, as the kernel shows it.
namespace test {

/// The mappings of this memory in a process.
struct mappings {
    int read_only = 0;
    int writable = 0;
    std::set<std::string> inodes;

    static mappings of(int process)
    {
        mappings found;
        std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
        for (std::string line; std::getline(maps, line);) {
            if (line.find("/memfd:coaccel-shared") == std::string::npos)
                continue;
            char permissions[8]{}, inode[32]{};
            REQUIRE(std::sscanf(line.c_str(), "%*s %7s %*s %*s %31s", permissions, inode) == 2);
            ++(permissions[1] == 'w' ? found.writable : found.read_only);
            found.inodes.insert(inode);
        }
        return found;
    }
};

/// The descriptors of such memory that this process holds.
inline int held()
{
    const auto all = inventory::take().descriptors;
    const auto found = all.find("/memfd:coaccel-shared (deleted)");
    return found == all.end() ? 0 : found->second;
}

} // namespace test

#endif
