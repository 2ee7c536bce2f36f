#include "device/blocking_pool.hpp"

#include "worker/fork_guard.hpp"

#include <memory>
#include <utility>

namespace coaccel::detail {

namespace asio = boost::asio;

asio::execution_context::id blocking_pool::id;

namespace {

constexpr std::size_t most_contexts = 64;
constexpr std::size_t most_compilers = 2;

} // namespace

blocking_pool::blocking_pool(asio::execution_context& owner) : service(owner)
{
    worker::watch_forks();
    forks_ = worker::fork_count();
}

blocking_pool::~blocking_pool() = default;

void blocking_pool::run(kind what, std::function<void()> job, std::function<void()> hurry)
{
    forget_parents_threads();
    const std::scoped_lock lock(mutex_);
    if (closed_)
        return;
    auto& threads = threads_[static_cast<std::size_t>(what)];
    if (!threads)
        threads = std::make_unique<growing_pool>(what == kind::contexts ? most_contexts : most_compilers);
    if (what == kind::compiling)
        return threads->run([this, job = std::move(job)] {
            if (!closed_)
                job();
        });
    if (!hurry)
        return threads->run(std::move(job));
    const auto mine = hurries_.insert(hurries_.end(), std::move(hurry));
    try {
        threads->run([this, mine, job = std::move(job)] {
            job();
            const std::scoped_lock done(mutex_);
            hurries_.erase(mine);
        });
    } catch (...) {
        hurries_.erase(mine);
        throw;
    }
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
            threads->join();
}

void blocking_pool::notify_fork(asio::execution_context::fork_event event)
{
    if (event == asio::execution_context::fork_child)
        forget_parents_threads();
}

/// In a forked child there are none of the threads: waking them does nothing, and joining them waits for ever. Not
/// only in notify_fork, which a program may not have called.
void blocking_pool::forget_parents_threads() noexcept
{
    const auto forks = worker::fork_count();
    if (forks_.exchange(forks) == forks)
        return;
    // One of them may have held it when the process was forked.
    std::construct_at(&mutex_);
    for (auto& threads : threads_)
        (void)threads.release();
    hurries_.clear();
}

} // namespace coaccel::detail
