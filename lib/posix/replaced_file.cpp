#include "posix/replaced_file.hpp"

#include "posix/file_error.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sys/stat.h>
#include <utility>

namespace coaccel::detail {
namespace {

/// The kernel writes at most this much at once.
constexpr std::size_t largest_write = std::size_t(1) << 30;

/// Other processes, and other threads, may save to the same path at the same time.
std::string temporary_name(const std::string& path)
{
    static std::atomic<unsigned> last{0};
    return path + "." + std::to_string(::getpid()) + "-" + std::to_string(++last) + ".tmp";
}

std::string folder_of(const std::string& path)
{
    const auto folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

/// Makes the new name durable. Not every file system can do this, and the file has been replaced already.
void sync_folder(const std::string& path) noexcept
{
    const unique_fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder)
        (void)::fsync(folder.get());
}

} // namespace

replaced_file::replaced_file(std::string path, std::string temporary, unique_fd fd) noexcept
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd))
{}

replaced_file::replaced_file(replaced_file&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), fd_(std::move(other.fd_))
{}

replaced_file::~replaced_file()
{
    if (!temporary_.empty())
        (void)::unlink(temporary_.c_str());
}

result<replaced_file> replaced_file::create(const std::string& path)
{
    std::string target = path;
    struct stat old = {};
    bool exists = ::lstat(path.c_str(), &old) == 0;
    if (exists && S_ISLNK(old.st_mode)) {
        std::error_code failed;
        target = std::filesystem::canonical(path, failed).string();
        if (failed)
            return file_error("follow", path, failed.value());
        exists = ::stat(target.c_str(), &old) == 0;
    }
    if (exists && !S_ISREG(old.st_mode))
        return not_a_file("replace", path);
    // The name may be taken by a file that an ended process with the same id has left.
    for (int attempt = 0;; ++attempt) {
        std::string temporary = temporary_name(target);
        auto fd = above_standard(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (!fd && errno == EEXIST && attempt < 100)
            continue;
        if (!fd)
            return file_error("create", temporary, errno);
        replaced_file made(std::move(target), std::move(temporary), std::move(fd));
        if (exists && ::fchmod(made.fd_.get(), old.st_mode & 0777) != 0)
            return file_error("set the permissions of", made.temporary_, errno);
        return result<replaced_file>(std::move(made));
    }
}

error_code replaced_file::write(std::span<const std::byte> bytes)
{
    while (!bytes.empty()) {
        const auto n = ::write(fd_.get(), bytes.data(), std::min(bytes.size(), largest_write));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_error("write", temporary_, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
}

error_code replaced_file::commit()
{
    if (::fsync(fd_.get()) != 0)
        return file_error("write", temporary_, errno);
    if (!fd_.close())
        return file_error("write", temporary_, errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
        return file_error("replace", path_, errno);
    temporary_.clear();
    sync_folder(folder_of(path_));
    return {};
}

} // namespace coaccel::detail
