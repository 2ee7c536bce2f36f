#include "worker/bell_watch.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace coaccel::worker {

std::shared_ptr<bell_watch> bell_watch::create(const asio::any_io_executor& ex, int bell,
                                               detail::context_events& events)
{
    // A descriptor of its own, because Asio closes what it has.
    const int mine = ::fcntl(bell, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (mine < 0)
        return nullptr;
    asio::posix::stream_descriptor d(ex);
    error_code ec;
    d.assign(mine, ec);
    if (!ec)
        return std::make_shared<bell_watch>(std::move(d), events);
    ::close(mine);
    return nullptr;
}

void bell_watch::arm()
{
    if (armed_.exchange(true, std::memory_order_acq_rel))
        return;
    // Also when it was cancelled: whoever asked for it anew meanwhile was told that it is armed.
    descriptor_.async_wait(asio::posix::descriptor_base::wait_read, [self = shared_from_this()](const error_code&) {
        self->armed_.store(false, std::memory_order_release);
        self->wake();
    });
}

void bell_watch::disarm() noexcept
{
    if (!armed_.load(std::memory_order_acquire))
        return;
    error_code ignored;
    descriptor_.cancel(ignored);
}

void bell_watch::stop() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        events_ = nullptr;
    }
    error_code ignored;
    descriptor_.cancel(ignored);
}

void bell_watch::wake() noexcept
{
    const std::scoped_lock lock(mutex_);
    if (events_)
        events_->wake();
}

} // namespace coaccel::worker
