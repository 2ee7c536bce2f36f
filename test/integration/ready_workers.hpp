#ifndef COACCEL_TEST_INTEGRATION_READY_WORKERS_HPP
#define COACCEL_TEST_INTEGRATION_READY_WORKERS_HPP

#include "posix/unique_fd.hpp"
#include "worker/protocol/wire.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

// The worker processes of this process, as the kernel shows them.
namespace test {

inline bool is_worker_child(const std::filesystem::path& process)
{
    std::ifstream file(process / "stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    char state = 'Z';
    int parent = 0;
    return name_end != std::string::npos && std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &parent) == 2 &&
           state != 'Z' && parent == ::getpid();
}

/// Whether the worker has reported its context: something was written to its reply ring.
inline bool worker_has_spoken(const std::filesystem::path& process)
{
    using coaccel::worker::control_block;
    const coaccel::detail::unique_fd control(::open((process / "fd" / "3").c_str(), O_RDONLY | O_CLOEXEC));
    std::uint64_t written = 0;
    return control &&
           ::pread(control.get(), &written, sizeof written,
                   offsetof(control_block, replies) + offsetof(coaccel::worker::ring_control, written)) ==
               sizeof written &&
           written != 0;
}

/// The ready workers of this process except this one.
inline std::vector<int> ready_besides(int worker)
{
    std::vector<int> found;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const int pid = std::atoi(entry.path().filename().c_str());
        if (pid <= 0 || pid == worker || !is_worker_child(entry.path()))
            continue;
        // Between fork and exec it is a copy of this process.
        if (std::filesystem::read_symlink(entry.path() / "exe", ec).filename() == "coaccel-worker" &&
            worker_has_spoken(entry.path()))
            found.push_back(pid);
    }
    return found;
}

} // namespace test

#endif
