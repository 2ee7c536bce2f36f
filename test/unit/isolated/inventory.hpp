#ifndef COACCEL_TEST_UNIT_ISOLATED_INVENTORY_HPP
#define COACCEL_TEST_UNIT_ISOLATED_INVENTORY_HPP

#include <coaccel/core/log.hpp>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <thread>

namespace test {

/// What this process has of the things that workers cost.
struct inventory {
    /// How many of each kind, such as "pipe" or "/memfd:coaccel-control (deleted)".
    std::map<std::string, int> descriptors;
    /// Mappings of memory shared with workers.
    int areas = 0;
    int threads = 0;

    static inventory take()
    {
        // The log has a thread while there is something to deliver.
        (void)coaccel::flush_log();
        inventory all;
        std::error_code ec;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            auto kind = std::filesystem::read_symlink(entry.path(), ec).string();
            // The one that reads the directory is gone by the time it is asked for.
            if (ec || kind.starts_with("/proc/"))
                continue;
            // Behind it comes the number of a pipe or socket.
            if (kind.starts_with("pipe:") || kind.starts_with("socket:"))
                kind.resize(kind.find(':'));
            ++all.descriptors[kind];
        }
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            all.areas += line.find("/memfd:coaccel") != std::string::npos;
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
            ++all.threads;
        return all;
    }

    /// A thread that was joined can be seen a little longer, so this waits until there is what is expected, or long
    /// enough.
    static inventory take_expecting(const inventory& expected)
    {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        for (;;) {
            auto found = take();
            if (found == expected || std::chrono::steady_clock::now() > until)
                return found;
            std::this_thread::yield();
        }
    }

    friend bool operator==(const inventory&, const inventory&) = default;

    friend std::ostream& operator<<(std::ostream& out, const inventory& i)
    {
        for (const auto& [kind, count] : i.descriptors)
            out << count << " of " << kind << ", ";
        return out << i.areas << " areas, " << i.threads << " threads";
    }
};

/// Whether this process has no child, neither one that runs nor one that has ended and was not waited for.
inline bool childless()
{
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
}

/// Whether a child has ended and nobody has waited for it.
inline bool has_zombie()
{
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

} // namespace test

#endif
