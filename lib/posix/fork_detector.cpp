#include "posix/fork_detector.hpp"

#include <atomic>
#include <pthread.h>
#include <unistd.h>

namespace coaccel::detail {
namespace {

std::atomic<std::uint32_t> forks{0};
// Set only when the handler could not be installed.
std::atomic<pid_t> owner{0};

} // namespace

void watch_forks() noexcept
{
    [[maybe_unused]] static const bool once = [] {
        if (::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }) != 0)
            owner.store(::getpid(), std::memory_order_relaxed);
        return true;
    }();
}

std::uint32_t fork_count() noexcept
{
    const auto pid = owner.load(std::memory_order_relaxed);
    if (pid != 0)
        return pid == ::getpid() ? 0 : 1;
    return forks.load(std::memory_order_relaxed);
}

bool forked() noexcept
{
    return fork_count() != 0;
}

} // namespace coaccel::detail
