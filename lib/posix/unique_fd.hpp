#ifndef COACCEL_POSIX_UNIQUE_FD_HPP
#define COACCEL_POSIX_UNIQUE_FD_HPP

#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace coaccel::detail {

/// Owns a descriptor.
class unique_fd {
public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : fd_(fd) {}
    unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
    unique_fd& operator=(unique_fd&& other) noexcept
    {
        if (this != &other)
            reset(other.release());
        return *this;
    }
    ~unique_fd() { reset(); }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

    /// The caller must close it.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

    /// False: the last writes may not have reached the file.
    bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

    void reset(int fd = -1) noexcept
    {
        if (const int old = std::exchange(fd_, fd); old >= 0)
            ::close(old);
    }

private:
    int fd_ = -1;
};

/// Takes ownership of a new descriptor, or -1, and moves it to a number above those of the standard streams. A program
/// that was started with its standard error closed would otherwise write its messages to the file that got that number.
///
/// Empty, with errno set, if there is no descriptor.
inline unique_fd above_standard(int fd) noexcept
{
    unique_fd first(fd);
    if (fd < 0 || fd > STDERR_FILENO)
        return first;
    return unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

} // namespace coaccel::detail

#endif
