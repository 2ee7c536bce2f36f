#ifndef COACCEL_DETAIL_SHUTDOWN_HOOK_HPP
#define COACCEL_DETAIL_SHUTDOWN_HOOK_HPP

#include <coaccel/detail/pending.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace coaccel::detail {

class shutdown_registry;

/// The executor of an object that may outlive its execution context. An executor may not: a strand's implementation
/// belongs to a service of the context. The object lets go of it in its shutdown.
class COACCEL_DECL held_executor {
public:
    explicit held_executor(asio::any_io_executor ex);
    held_executor(const held_executor&) = delete;
    held_executor& operator=(const held_executor&) = delete;
    ~held_executor();

    /// The system's executor once it was let go of.
    const asio::any_io_executor& get() const noexcept;

    /// Hands the executor over, to be destroyed outside of all locks: a strand destroys the handlers that wait for it.
    void let_go(pending_list& out) noexcept;

private:
    struct node;

    node* held_;
};

/// Base of everything that holds waiting operations.
///
/// A suspended coroutine may own the very object it waits on. When the execution context is destroyed, its
/// service collects the waiting operations of all live hooks and destroys them, which breaks such cycles.
class COACCEL_DECL shutdown_hook {
public:
    shutdown_hook(const shutdown_hook&) = delete;
    shutdown_hook& operator=(const shutdown_hook&) = delete;

    /// Hands over every waiting operation, and executors; operations that arrive later are destroyed at once. The
    /// execution context is gone soon after, and nothing of it may be touched any more.
    virtual void shutdown(pending_list& out) noexcept = 0;

    /// Called in a forked child when the program tells the execution context that it is one.
    virtual void on_fork() noexcept {}

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
