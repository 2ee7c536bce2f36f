#ifndef COACCEL_CONTEXT_GRAVEYARD_HPP
#define COACCEL_CONTEXT_GRAVEYARD_HPP

#include <forward_list>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace coaccel::detail {

/// Keeps for good what a thread is stuck in: the backend of a context that is dead or hangs. It stays reachable, so
/// that it is not taken for a leak.
template <class T>
class graveyard {
public:
    static void bury(std::unique_ptr<T> dead) noexcept
    {
        static auto& graves = *new std::forward_list<std::unique_ptr<T>>;
        static std::mutex mutex;
        const std::scoped_lock lock(mutex);
        try {
            graves.push_front(nullptr);
        } catch (const std::bad_alloc&) {
            // Buried without a name.
            (void)dead.release();
            return;
        }
        graves.front() = std::move(dead);
    }
};

} // namespace coaccel::detail

#endif
