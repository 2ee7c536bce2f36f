#include "device/blocking_pool.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace coaccel::detail {

namespace asio = boost::asio;

asio::execution_context::id blocking_pool::id;

blocking_pool::blocking_pool(asio::execution_context& owner) : service(owner) {}

blocking_pool::~blocking_pool() = default;

void blocking_pool::run(kind what, std::function<void()> job, std::function<void()> hurry)
{
    const std::scoped_lock lock(mutex_);
    if (closed_)
        return;
    auto& threads = threads_[static_cast<std::size_t>(what)];
    if (!threads)
        threads = std::make_unique<asio::thread_pool>(2);
    if (what == kind::compiling)
        return asio::post(*threads, [this, job = std::move(job)] {
            if (!closed_)
                job();
        });
    if (!hurry)
        return asio::post(*threads, std::move(job));
    const auto mine = hurries_.insert(hurries_.end(), std::move(hurry));
    asio::post(*threads, [this, mine, job = std::move(job)] {
        job();
        const std::scoped_lock done(mutex_);
        hurries_.erase(mine);
    });
}

void blocking_pool::shutdown()
{
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
        for (const auto& hurry : hurries_)
            hurry();
    }
    for (auto& threads : threads_)
        if (threads)
            threads->join();
}

void blocking_pool::notify_fork(asio::execution_context::fork_event event)
{
    // The child has none of the threads: who wakes or joins them waits for ever.
    if (event != asio::execution_context::fork_child)
        return;
    for (auto& threads : threads_)
        (void)threads.release();
    hurries_.clear();
}

} // namespace coaccel::detail
