#include "posix/machine_limits.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <string_view>
#include <thread>
#include <unistd.h>

namespace coaccel::detail {
namespace {

/// The first number in a text; nothing for "max", -1 and similar values.
std::optional<std::uint64_t> number(std::string_view text) noexcept
{
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{})
        return std::nullopt;
    return value;
}

std::string_view take_until(std::string_view& text, char end) noexcept
{
    const auto at = text.find(end);
    const auto taken = text.substr(0, at);
    text.remove_prefix(at == text.npos ? text.size() : at + 1);
    return taken;
}

bool lists(std::string_view controllers, std::string_view wanted) noexcept
{
    while (!controllers.empty())
        if (take_until(controllers, ',') == wanted)
            return true;
    return false;
}

class limit_reader {
public:
    explicit limit_reader(const file_reader& read) : read_(read) {}

    cgroup_limits limits;

    void version_2(const std::string& folder)
    {
        for (const char* name : {"/memory.max", "/memory.high"})
            memory(folder + name);
        if (const auto text = read_(folder + "/cpu.max")) {
            std::string_view rest = *text;
            const auto quota = number(take_until(rest, ' '));
            cpus(quota, number(rest));
        }
    }

    void memory_version_1(const std::string& folder) { memory(folder + "/memory.limit_in_bytes"); }

    void cpus_version_1(const std::string& folder)
    {
        const auto quota = read_(folder + "/cpu.cfs_quota_us");
        const auto period = read_(folder + "/cpu.cfs_period_us");
        if (quota && period)
            cpus(number(*quota), number(*period));
    }

private:
    void memory(const std::string& path)
    {
        if (const auto text = read_(path))
            limits.memory = std::min(limits.memory, number(*text).value_or(limits.memory));
    }

    void cpus(std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period)
    {
        if (quota && period && *quota > 0 && *period > 0)
            limits.cpus = std::min(limits.cpus, (*quota - 1) / *period + 1);
    }

    const file_reader& read_;
};

/// Calls f with the folder of the group and of each group above it. In a container the path may be a path of the host
/// of which only the end, or only the root, is mounted: missing files are skipped.
template <class Function>
void for_each_level(const std::string& mount, std::string_view path, Function f)
{
    while (path.size() > 1 && path.front() == '/') {
        f(mount + std::string(path));
        path = path.substr(0, path.rfind('/'));
    }
    f(mount);
}

std::optional<std::string> read_file(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
        return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
}

} // namespace

cgroup_limits read_cgroup_limits(const file_reader& read)
{
    limit_reader reader(read);
    const std::string root = "/sys/fs/cgroup";
    const auto groups = read("/proc/self/cgroup").value_or("");
    for (std::string_view lines = groups; !lines.empty();) {
        // hierarchy:controllers:path; version 2 is hierarchy 0 and lists no controllers.
        std::string_view path = take_until(lines, '\n');
        const auto hierarchy = take_until(path, ':');
        const auto controllers = take_until(path, ':');
        if (hierarchy == "0" && controllers.empty())
            for_each_level(root, path, [&](const std::string& folder) { reader.version_2(folder); });
        if (lists(controllers, "memory"))
            for_each_level(root + "/memory", path, [&](const std::string& folder) { reader.memory_version_1(folder); });
        if (lists(controllers, "cpu"))
            for (const auto* mount : {"/cpu", "/cpu,cpuacct"})
                for_each_level(root + mount, path, [&](const std::string& folder) { reader.cpus_version_1(folder); });
    }
    return reader.limits;
}

std::uint64_t usable_memory()
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long size = ::sysconf(_SC_PAGE_SIZE);
    const auto machine = pages > 0 && size > 0 ? std::uint64_t(pages) * std::uint64_t(size) : std::uint64_t(1) << 40;
    return std::min(machine, read_cgroup_limits(read_file).memory);
}

unsigned usable_cpus()
{
    cpu_set_t mask;
    // Fails on machines with more CPUs than the mask has bits.
    const auto allowed = ::sched_getaffinity(0, sizeof mask, &mask) == 0
                             ? static_cast<std::uint64_t>(CPU_COUNT(&mask))
                             : std::uint64_t(std::thread::hardware_concurrency());
    return static_cast<unsigned>(std::max<std::uint64_t>(1, std::min(allowed, read_cgroup_limits(read_file).cpus)));
}

} // namespace coaccel::detail
