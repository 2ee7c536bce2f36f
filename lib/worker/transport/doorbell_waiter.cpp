#include "worker/transport/doorbell_waiter.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace coaccel::worker {

std::shared_ptr<doorbell_waiter> doorbell_waiter::create(const asio::any_io_executor& ex, int bell,
                                                         detail::context_events& events)
{
    // A duplicate, because Asio closes the descriptors that it owns.
    const int mine = ::fcntl(bell, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (mine < 0)
        return nullptr;
    asio::posix::stream_descriptor d(ex);
    error_code ec;
    d.assign(mine, ec);
    if (!ec)
        return std::make_shared<doorbell_waiter>(std::move(d), events);
    ::close(mine);
    return nullptr;
}

void doorbell_waiter::arm()
{
    if (armed_.exchange(true, std::memory_order_acq_rel))
        return;
    // Wakes even if cancelled: an arm() in the meantime has returned without effect, because the wait was still armed.
    descriptor_.async_wait(asio::posix::descriptor_base::wait_read, [self = shared_from_this()](const error_code&) {
        self->armed_.store(false, std::memory_order_release);
        self->wake();
    });
}

void doorbell_waiter::disarm() noexcept
{
    if (!armed_.load(std::memory_order_acquire))
        return;
    error_code ignored;
    descriptor_.cancel(ignored);
}

void doorbell_waiter::stop() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        events_ = nullptr;
    }
    error_code ignored;
    descriptor_.cancel(ignored);
}

void doorbell_waiter::wake() noexcept
{
    const std::scoped_lock lock(mutex_);
    if (events_)
        events_->wake();
}

} // namespace coaccel::worker
