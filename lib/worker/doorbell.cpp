#include "worker/doorbell.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <utility>

namespace coaccel::worker {

result<doorbell> doorbell::create()
{
    auto fd = above_standard(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (fd)
        return doorbell(std::move(fd));
    const int reason = errno;
    if (reason == EMFILE || reason == ENFILE)
        return note_error(errc::out_of_memory, "no descriptors left for a doorbell");
    return note_error(errc::out_of_memory, "no doorbell: " + std::generic_category().message(reason));
}

void doorbell::ring() noexcept
{
    const std::uint64_t one = 1;
    // The one other failure is a full counter, and then it has rung.
    while (::write(fd_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
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
        pollfd watched{fd_.get(), POLLIN, 0};
        const int ready = ::ppoll(&watched, 1, &limit, nullptr);
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready > 0 && (watched.revents & POLLIN) == 0)
            return false;
        if (ready > 0 && take())
            return true;
        // Signals, and others that waited for the same bell, leave time to go.
        if (ready == 0)
            return false;
        left = std::max(timeout - (steady_clock::now() - begin), nanoseconds::zero());
    }
}

bool doorbell::take() noexcept
{
    std::uint64_t count = 0;
    ssize_t got = 0;
    do
        got = ::read(fd_.get(), &count, sizeof(count));
    while (got < 0 && errno == EINTR);
    return got == sizeof(count);
}

} // namespace coaccel::worker
