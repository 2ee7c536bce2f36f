#include "posix/file.hpp"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

namespace coaccel::detail {

std::optional<std::string> read_all(const unique_fd& f, std::uint64_t limit)
{
    // Read until the end of the file: files in /proc report size zero, and other files may grow.
    char chunk[16 << 10];
    std::string text;
    for (;;) {
        const auto n = ::read(f.get(), chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return text;
        if (n < 0 || static_cast<std::uint64_t>(n) > limit - text.size())
            return std::nullopt;
        text.append(chunk, static_cast<std::size_t>(n));
    }
}

std::string file_stamp(const std::string& path)
{
    struct stat s = {};
    if (::stat(path.c_str(), &s) != 0)
        return {};
    return std::to_string(s.st_size) + "@" + std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec);
}

} // namespace coaccel::detail
