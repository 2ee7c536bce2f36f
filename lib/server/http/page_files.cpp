#include "server/http/page_files.hpp"

#include "server/protocol/in_quotes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace coaccel::server {
namespace {

// A page is made of small files. Larger ones would occupy the thread of the connections.
constexpr off_t most_bytes = 16 << 20;

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> content_types{{
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".txt", "text/plain; charset=utf-8"},
    {".wasm", "application/wasm"},
}};

std::string_view content_type_of(std::string_view path) noexcept
{
    for (const auto& [ending, type] : content_types)
        if (path.ends_with(ending))
            return type;
    return "application/octet-stream";
}

/// Reads a regular file. False if it is none, is too large, or cannot be read.
bool read_small_file(const std::string& path, std::string& content)
{
    // Without O_NONBLOCK the call would wait for the writer of a FIFO.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    struct closing {
        int file;
        ~closing() { ::close(file); }
    } const at_end{file};
    struct stat about{};
    if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > most_bytes)
        return false;
    content.resize(static_cast<std::size_t>(about.st_size));
    for (std::size_t at = 0; at < content.size();) {
        const auto n = ::read(file, content.data() + at, content.size() - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += static_cast<std::size_t>(n);
    }
    return true;
}

} // namespace

bool is_page_path(std::string_view path) noexcept
{
    if (path.find('\\') != path.npos || path.find('\0') != path.npos)
        return false;
    for (std::size_t at = 0; at <= path.size();) {
        const auto end = std::min(path.find('/', at), path.size());
        const auto part = path.substr(at, end - at);
        if (part.starts_with('.') || (part.empty() && end != path.size()))
            return false;
        at = end + 1;
    }
    return true;
}

reply page_file(const std::string& folder, std::string_view path)
{
    const auto missing = [&] { return error_reply(404, "there is no page " + in_quotes(path)); };
    if (folder.empty() || !is_page_path(path))
        return missing();
    std::string name(path);
    if (name.empty() || name.ends_with('/'))
        name += "index.html";
    reply r;
    if (!read_small_file(folder + "/" + name, r.body))
        return missing();
    r.content_type = content_type_of(name);
    r.page = true;
    return r;
}

} // namespace coaccel::server
