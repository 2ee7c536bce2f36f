#include "worker/transport/doorbell.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace coaccel::worker {
namespace {

// The smallest pipe, so that one read clears it.
constexpr int pipe_bytes = 4096;

error_code refused(int reason)
{
    if (reason == EMFILE || reason == ENFILE)
        return make_error_with_message(errc::out_of_memory, "no descriptors left for a doorbell");
    return make_error_with_message(errc::out_of_memory, "no doorbell: " + std::generic_category().message(reason));
}

detail::unique_fd make_own() noexcept
{
    return detail::above_standard(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

} // namespace

result<doorbell> doorbell::create()
{
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return refused(errno);
    detail::unique_fd wait = detail::above_standard(ends[0]), ring = detail::above_standard(ends[1]);
    if (!wait || !ring)
        return refused(errno);
    // Only saves memory; a larger pipe works too.
    (void)::fcntl(ring.get(), F_SETPIPE_SZ, pipe_bytes);
    detail::unique_fd own = make_own();
    if (!own)
        return refused(errno);
    return doorbell(std::move(wait), std::move(ring), std::move(own));
}

doorbell doorbell::adopt_wait(detail::unique_fd fd) noexcept
{
    return doorbell(std::move(fd), detail::unique_fd(), make_own());
}

doorbell doorbell::adopt_ring(detail::unique_fd fd) noexcept
{
    return doorbell(detail::unique_fd(), std::move(fd), detail::unique_fd());
}

void doorbell::ring() noexcept
{
    const char one = 1;
    // The only other failure is a full pipe, which means that the doorbell has rung.
    while (::write(ring_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

void doorbell::interrupt() noexcept
{
    const std::uint64_t one = 1;
    while (::write(own_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

void doorbell::clear() noexcept
{
    (void)take();
}

bool doorbell::wait(std::chrono::nanoseconds timeout) noexcept
{
    using std::chrono::nanoseconds;
    using std::chrono::seconds;
    using std::chrono::steady_clock;

    timeout = std::max(timeout, nanoseconds::zero());
    const auto begin = steady_clock::now();
    auto left = timeout;
    for (;;) {
        const auto whole = std::chrono::duration_cast<seconds>(left);
        const timespec limit{static_cast<std::time_t>(whole.count()), static_cast<long>((left - whole).count())};
        pollfd watched[] = {{wait_.get(), POLLIN, 0}, {own_.get(), POLLIN, 0}};
        const int ready = ::ppoll(watched, std::size(watched), &limit, nullptr);
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready > 0 && ((watched[0].revents | watched[1].revents) & POLLIN) == 0)
            return false;
        std::uint64_t count = 0;
        const bool interrupted = ready > 0 && (watched[1].revents & POLLIN) != 0 &&
                                 ::read(own_.get(), &count, sizeof(count)) == sizeof(count);
        if (ready > 0 && (((watched[0].revents & POLLIN) != 0 && take()) || interrupted))
            return true;
        // After a signal, or when another waiter has cleared the doorbell, time is left.
        if (ready == 0)
            return false;
        left = std::max(timeout - (steady_clock::now() - begin), nanoseconds::zero());
    }
}

// One read, because the other process may write without end.
bool doorbell::take() noexcept
{
    char bytes[pipe_bytes];
    ssize_t got = 0;
    do
        got = ::read(wait_.get(), bytes, sizeof(bytes));
    while (got < 0 && errno == EINTR);
    return got > 0;
}

} // namespace coaccel::worker
