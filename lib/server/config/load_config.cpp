#include "posix/unique_fd.hpp"
#include "server/config/server_config.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace coaccel::server {
namespace {

constexpr std::size_t most_config_bytes = std::size_t(1) << 20;

std::string system_text(int error)
{
    return std::system_category().message(error);
}

/// Reads the file to `text`. Returns what is wrong; empty: nothing.
std::string read_text(const std::string& file, std::string& text)
{
    // Without O_NONBLOCK, opening a FIFO waits for a writer.
    const detail::unique_fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0)
        return "the file cannot be opened: " + system_text(errno);
    if (!S_ISREG(status.st_mode))
        return "it is not a regular file";
    for (;;) {
        const auto held = text.size();
        text.resize(held + 65536);
        const auto n = ::read(fd.get(), text.data() + held, 65536);
        if (n < 0 && errno == EINTR) {
            text.resize(held);
            continue;
        }
        if (n < 0)
            return "the file cannot be read: " + system_text(errno);
        text.resize(held + static_cast<std::size_t>(n));
        if (n == 0)
            return {};
        if (text.size() > most_config_bytes)
            return "the file has more than " + std::to_string(most_config_bytes) + " bytes";
    }
}

} // namespace

server_config load_config(const command_line& line)
{
    std::string text;
    std::string problem;
    if (!line.file.empty())
        problem = read_text(line.file, text);
    if (!problem.empty())
        text.clear();
    auto made = make_config(text, line.file, line.entries);
    if (!problem.empty())
        // Without the file, errors about what is missing would mislead.
        made.errors = {{line.file, 0, "", problem}};
    made.errors.insert(made.errors.end(), line.errors.begin(), line.errors.end());
    return made;
}

} // namespace coaccel::server
