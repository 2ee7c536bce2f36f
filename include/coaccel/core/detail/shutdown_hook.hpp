#ifndef COACCEL_CORE_DETAIL_SHUTDOWN_HOOK_HPP
#define COACCEL_CORE_DETAIL_SHUTDOWN_HOOK_HPP

#include <coaccel/core/detail/async_op.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace coaccel::detail {

class shutdown_registry;

/// The executor of an object that may outlive its execution context. An executor must not outlive it: a strand's
/// implementation belongs to a service of the context. The object releases its executor in its shutdown.
class COACCEL_DECL held_executor {
public:
    explicit held_executor(asio::any_io_executor ex);
    held_executor(const held_executor&) = delete;
    held_executor& operator=(const held_executor&) = delete;
    ~held_executor();

    /// The system executor after let_go().
    const asio::any_io_executor& get() const noexcept;

    /// Moves the executor to `out`, to be destroyed outside all locks: a strand destroys the handlers that wait for it.
    void let_go(async_op_list& out) noexcept;

private:
    struct node;

    node* held_;
};

/// Base of all objects that hold waiting operations.
///
/// A suspended coroutine may own the object that it waits on. When the execution context is destroyed, its service
/// collects the waiting operations of all live hooks and destroys them, which breaks such cycles.
class COACCEL_DECL shutdown_hook {
public:
    shutdown_hook(const shutdown_hook&) = delete;
    shutdown_hook& operator=(const shutdown_hook&) = delete;

    /// Moves every waiting operation and every executor to `out`; operations that arrive later are destroyed at once.
    /// The execution context is destroyed soon afterwards and must not be used any more.
    virtual void shutdown(async_op_list& out) noexcept = 0;

    /// Called in a forked child when the program calls notify_fork() of the execution context.
    virtual void on_fork() noexcept {}

protected:
    shutdown_hook() = default;
    ~shutdown_hook();

    /// Derived classes call `enlist` at the end of their constructor and `withdraw` at the beginning of their
    /// destructor, so that a shutdown on another thread never sees a partly constructed object.
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
