#include "device/blocking_pool.hpp"

#include <utility>

namespace coaccel::detail {

namespace asio = boost::asio;

asio::execution_context::id blocking_pool::id;

namespace {

constexpr std::size_t most_contexts = 64;
constexpr std::size_t most_compilers = 2;

} // namespace

blocking_pool::blocking_pool(asio::execution_context& owner) : service(owner) {}

blocking_pool::~blocking_pool() = default;

void blocking_pool::run(kind what, std::function<void()> job, std::function<void()> hurry)
{
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
