#ifndef COACCEL_TEST_SUPPORT_CAPTURED_STDERR_HPP
#define COACCEL_TEST_SUPPORT_CAPTURED_STDERR_HPP

#include <coaccel/core/log.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace test {

/// Replaces standard error by a pipe. doctest reports to standard output.
class captured_stderr {
public:
    captured_stderr()
    {
        coaccel::flush_log();
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        read_ = ends[0];
        before_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        REQUIRE(::dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
        ::close(ends[1]);
        ::fcntl(read_, F_SETFL, O_NONBLOCK);
    }
    captured_stderr(const captured_stderr&) = delete;
    captured_stderr& operator=(const captured_stderr&) = delete;
    ~captured_stderr()
    {
        (void)text();
        coaccel::flush_log();
        (void)::dup2(before_, STDERR_FILENO);
        ::close(before_);
        ::close(read_);
    }

    /// Writes until the pipe is full.
    void fill()
    {
        const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
        ::fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
        const std::string page(4096, '.');
        while (::write(STDERR_FILENO, page.data(), page.size()) > 0) {
        }
        ::fcntl(STDERR_FILENO, F_SETFL, flags);
    }

    /// The text written since the last call; does not wait.
    std::string text()
    {
        std::string all;
        char bytes[4096];
        for (ssize_t n = 0; (n = ::read(read_, bytes, sizeof bytes)) > 0;)
            all.append(bytes, static_cast<std::size_t>(n));
        return all;
    }

    /// Reads until the text appears, or until a timeout.
    std::string text_until(const std::string& wanted)
    {
        std::string all = text();
        pollfd more{read_, POLLIN, 0};
        while (all.find(wanted) == std::string::npos && ::poll(&more, 1, 20'000) > 0)
            all += text();
        return all;
    }

private:
    int read_ = -1;
    int before_ = -1;
};

} // namespace test

#endif
