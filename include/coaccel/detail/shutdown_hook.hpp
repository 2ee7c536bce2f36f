#ifndef COACCEL_DETAIL_SHUTDOWN_HOOK_HPP
#define COACCEL_DETAIL_SHUTDOWN_HOOK_HPP

#include <coaccel/detail/pending.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace coaccel::detail {

class shutdown_registry;

/// Base of everything that holds waiting operations.
///
/// A suspended coroutine may own the very object it waits on. When the execution context is destroyed, its
/// service collects the waiting operations of all live hooks and destroys them, which breaks such cycles.
class COACCEL_DECL shutdown_hook {
public:
    shutdown_hook(const shutdown_hook&) = delete;
    shutdown_hook& operator=(const shutdown_hook&) = delete;

    /// Hands over every waiting operation; operations that arrive later are destroyed at once.
    virtual void shutdown(pending_list& out) noexcept = 0;

protected:
    shutdown_hook() = default;
    ~shutdown_hook();

    /// Derived classes call `enlist` when they are complete and `withdraw` first thing in their destructor,
    /// so that a shutdown on another thread never meets a half-built object.
    void enlist(const asio::any_io_executor& ex);
    void withdraw() noexcept;

private:
    friend class shutdown_registry;

    std::shared_ptr<shutdown_registry> registry_;
    shutdown_hook* next_ = nullptr;
    shutdown_hook* prev_ = nullptr;
};

} // namespace coaccel::detail

#endif
