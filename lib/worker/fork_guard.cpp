#include "worker/fork_guard.hpp"

#include <atomic>
#include <pthread.h>
#include <unistd.h>

namespace coaccel::worker {
namespace {

std::atomic<bool> is_child{false};
// Set only when the handler could not be installed.
std::atomic<pid_t> owner{0};

} // namespace

void watch_forks() noexcept
{
    [[maybe_unused]] static const bool once = [] {
        if (::pthread_atfork(nullptr, nullptr, [] { is_child.store(true, std::memory_order_relaxed); }) != 0)
            owner.store(::getpid(), std::memory_order_relaxed);
        return true;
    }();
}

bool forked() noexcept
{
    if (is_child.load(std::memory_order_relaxed))
        return true;
    const auto pid = owner.load(std::memory_order_relaxed);
    return pid != 0 && pid != ::getpid();
}

} // namespace coaccel::worker
