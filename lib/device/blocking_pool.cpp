#include "device/blocking_pool.hpp"

#include "posix/fork_detector.hpp"

#include <memory>
#include <utility>

namespace coaccel::detail {

namespace asio = boost::asio;

asio::execution_context::id blocking_pool::id;

namespace {

/// The largest number of threads of each kind. Few copies at a time use the whole bandwidth of the memory.
constexpr std::array<std::size_t, 3> most_threads{64, 2, 4};

} // namespace

blocking_pool::blocking_pool(asio::execution_context& owner) : service(owner)
{
    watch_forks();
    forks_ = fork_count();
}

blocking_pool::~blocking_pool() = default;

bool blocking_pool::run(kind what, std::function<void()> job, std::function<void()> hurry)
{
    forget_parents_threads();
    const std::scoped_lock lock(mutex_);
    // The execution context destroys the waiting operations.
    if (closed_)
        return true;
    auto& threads = threads_[static_cast<std::size_t>(what)];
    if (!threads)
        threads = std::make_unique<thread_pool>(most_threads[static_cast<std::size_t>(what)]);
    if (what != kind::contexts)
        return threads->run([this, job = std::move(job)] {
            if (!closed_)
                job();
        });
    if (!hurry)
        return threads->run(std::move(job));
    const auto mine = hurries_.insert(hurries_.end(), std::move(hurry));
    const bool started = threads->run([this, mine, job = std::move(job)] {
        job();
        const std::scoped_lock done(mutex_);
        hurries_.erase(mine);
    });
    if (!started)
        hurries_.erase(mine);
    return started;
}

void blocking_pool::shutdown()
{
    forget_parents_threads();
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
        for (const auto& hurry : hurries_)
            hurry();
    }
    for (auto& threads : threads_)
        if (threads)
            threads->finish();
}

void blocking_pool::notify_fork(asio::execution_context::fork_event event)
{
    if (event == asio::execution_context::fork_child)
        forget_parents_threads();
}

/// In a forked child these threads do not exist: waking them does nothing, and joining them blocks forever. Also called
/// outside notify_fork, because a program may not have called execution_context::notify_fork.
void blocking_pool::forget_parents_threads() noexcept
{
    const auto forks = fork_count();
    if (forks_.exchange(forks) == forks)
        return;
    // One of the threads may have held the mutex at the fork.
    std::construct_at(&mutex_);
    for (auto& threads : threads_)
        (void)threads.release();
    hurries_.clear();
}

} // namespace coaccel::detail
