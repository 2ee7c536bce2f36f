#include "processes.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace chaos {

bool is_child(int pid)
{
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    int parent = 0;
    char state = 0;
    return name_end != std::string::npos && std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &parent) == 2 &&
           parent == ::getpid() && state != 'Z';
}

std::vector<int> children()
{
    std::vector<int> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        int pid = 0;
        const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (ec == std::errc() && end == name.data() + name.size() && is_child(pid))
            found.push_back(pid);
    }
    return found;
}

void send(int pid, int signal)
{
    if (is_child(pid))
        ::kill(pid, signal);
}

std::ptrdiff_t open_descriptors()
{
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

std::uint64_t left_resources(std::ptrdiff_t descriptors)
{
    int status = 0;
    std::uint64_t found = 0;
    if (::waitpid(-1, &status, WNOHANG) != -1) {
        found = std::max<std::uint64_t>(children().size(), 1);
        std::fprintf(stderr, "worker processes that are left: %llu\n", static_cast<unsigned long long>(found));
    }
    const auto now = open_descriptors();
    if (now > descriptors) {
        std::fprintf(stderr, "descriptors: %td, and %td before\n", now, descriptors);
        found += static_cast<std::uint64_t>(now - descriptors);
    }
    return found;
}

} // namespace chaos
