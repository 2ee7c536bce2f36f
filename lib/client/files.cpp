#include "client/files.hpp"

#include "core/escape_text.hpp"
#include "posix/file.hpp"
#include "posix/replaced_file.hpp"
#include "posix/unique_fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <span>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace coaccel::client {
namespace {

constexpr std::uint64_t most_file_bytes = std::uint64_t(2) << 30;

error_code unreadable(const std::string& path, const std::string& why)
{
    return make_error_with_message(errc::file_failed, detail::escape_text(path) + ": " + why);
}

} // namespace

result<std::string> read_file(const std::string& path)
{
    // Without O_NONBLOCK, opening a FIFO waits for a writer.
    const detail::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0)
        return unreadable(path, "the file cannot be opened: " + std::system_category().message(errno));
    if (!S_ISREG(status.st_mode))
        return unreadable(path, "it is not a regular file");
    auto content = detail::read_all(fd, most_file_bytes);
    if (!content)
        return unreadable(path, "the file cannot be read, or has more than 2 GiB");
    return std::move(*content);
}

result<void> write_file(const std::string& path, const std::string& content)
{
    BOOST_OUTCOME_TRY(auto file, detail::replaced_file::create(path));
    if (auto ec = file.write(std::as_bytes(std::span(content))))
        return ec;
    if (auto ec = file.commit())
        return ec;
    return success();
}

} // namespace coaccel::client
