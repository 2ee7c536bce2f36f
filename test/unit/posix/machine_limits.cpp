#include "posix/machine_limits.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace test_posix_machine_limits {

namespace {

using namespace coaccel::detail;
using files = std::map<std::string, std::string>;

constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

cgroup_limits limits_of(const files& given)
{
    return read_cgroup_limits([&](const std::string& path) -> std::optional<std::string> {
        const auto found = given.find(path);
        if (found == given.end())
            return std::nullopt;
        return found->second;
    });
}

} // namespace

TEST_SUITE_BEGIN("machine_limits");

TEST_CASE("the tightest limit of the control groups applies, in version 1 and 2")
{
    struct row {
        const char* name;
        files given;
        std::uint64_t memory;
        std::uint64_t cpus;
    };
    const row rows[] = {
        {"no control groups", {}, none, none},
        {"nothing limited",
         {{"/proc/self/cgroup", "0::/a\n"},
          {"/sys/fs/cgroup/a/memory.max", "max\n"},
          {"/sys/fs/cgroup/a/memory.high", "max\n"},
          {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}},
         none,
         none},
        {"version 2, own group",
         {{"/proc/self/cgroup", "0::/a/b\n"},
          {"/sys/fs/cgroup/a/b/memory.max", "1073741824\n"},
          {"/sys/fs/cgroup/a/b/memory.high", "max\n"},
          {"/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n"}},
         1073741824,
         2},
        {"version 2, the soft limit is lower",
         {{"/proc/self/cgroup", "0::/a\n"},
          {"/sys/fs/cgroup/a/memory.max", "4096000\n"},
          {"/sys/fs/cgroup/a/memory.high", "2048000\n"}},
         2048000,
         none},
        {"version 2, a group above allows less",
         {{"/proc/self/cgroup", "0::/a/b/c\n"},
          {"/sys/fs/cgroup/a/b/c/memory.max", "9000\n"},
          {"/sys/fs/cgroup/a/memory.max", "5000\n"},
          {"/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n"},
          {"/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"}},
         5000,
         2},
        {"version 2, a container that sees its own root",
         {{"/proc/self/cgroup", "0::/\n"},
          {"/sys/fs/cgroup/memory.max", "7000\n"},
          {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}},
         7000,
         1},
        {"version 1, a container with a path of the host",
         {{"/proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n1:name=systemd:/docker/1\n"},
          {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
         3000,
         1},
        {"version 1, no quota",
         {{"/proc/self/cgroup", "5:cpu:/x\n4:memory:/x\n"},
          {"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"},
          {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n"},
          {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"}},
         9223372036854771712ull,
         none},
        {"both versions",
         {{"/proc/self/cgroup", "4:memory:/x\n0::/y\n"},
          {"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "6000\n"},
          {"/sys/fs/cgroup/y/memory.max", "8000\n"}},
         6000,
         none},
        {"nonsense",
         {{"/proc/self/cgroup", "::\n:\nx\n0::a\n\n4:memory"},
          {"/sys/fs/cgroup/memory.max", ""},
          {"/sys/fs/cgroup/memory.high", "-5"},
          {"/sys/fs/cgroup/cpu.max", "0 0"}},
         none,
         none},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        const auto found = limits_of(r.given);
        CHECK(found.memory == r.memory);
        CHECK(found.cpus == r.cpus);
    }
}

TEST_CASE("the reported memory and CPU count of this machine are positive")
{
    CHECK(usable_memory() > std::uint64_t(1) << 20);
    CHECK(usable_cpus() >= 1);
}

TEST_SUITE_END();

} // namespace test_posix_machine_limits
