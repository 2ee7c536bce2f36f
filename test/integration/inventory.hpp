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

/// The resources of this process that workers use.
struct inventory {
    /// The number of descriptors of each kind, such as "pipe" or "/memfd:coaccel-control (deleted)".
    std::map<std::string, int> descriptors;
    /// Mappings of memory shared with workers.
    int areas = 0;
    int threads = 0;

    static inventory take()
    {
        // The log has a thread while there are messages to deliver.
        (void)coaccel::flush_log();
        inventory all;
        std::error_code ec;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            auto kind = std::filesystem::read_symlink(entry.path(), ec).string();
            // The descriptor that reads the directory is already closed when its link is read.
            if (ec || kind.starts_with("/proc/"))
                continue;
            // The number of a pipe or socket follows.
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

    /// A joined thread stays visible for a short time, so this waits for the expected state, up to a limit. For the
    /// same reason the expected state may have counted a thread too many.
    static inventory take_expecting(const inventory& expected)
    {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        for (;;) {
            auto found = take();
            if (found.threads < expected.threads)
                found.threads = expected.threads;
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

/// Whether this process has no child, neither running nor unreaped.
inline bool childless()
{
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
}

/// Whether a child has ended and was not reaped.
inline bool has_zombie()
{
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

} // namespace test

#endif
