#ifndef COACCEL_CONTEXT_FAULTS_LEAK_REGISTRY_HPP
#define COACCEL_CONTEXT_FAULTS_LEAK_REGISTRY_HPP

#include <forward_list>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace coaccel::detail {

/// Keeps objects in which a thread is stuck until the process ends: the backends of contexts that are dead or hang.
/// They stay reachable, so that leak checkers do not report them.
template <class T>
class leak_registry {
public:
    static void add(std::unique_ptr<T> dead) noexcept
    {
        static auto& leaked = *new std::forward_list<std::unique_ptr<T>>;
        static std::mutex mutex;
        const std::scoped_lock lock(mutex);
        try {
            leaked.push_front(nullptr);
        } catch (const std::bad_alloc&) {
            // Leak it without an entry in the list.
            (void)dead.release();
            return;
        }
        leaked.front() = std::move(dead);
    }
};

} // namespace coaccel::detail

#endif
