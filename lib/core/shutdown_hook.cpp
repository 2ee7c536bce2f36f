#include <coaccel/core/detail/shutdown_hook.hpp>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>

#include <mutex>
#include <utility>

namespace coaccel::detail {

// Shared between the service and its hooks: a hook may be destroyed after the context.
class shutdown_registry {
public:
    bool add(shutdown_hook& hook)
    {
        std::lock_guard lock(mutex_);
        if (closed_)
            return false;
        hook.prev_ = nullptr;
        hook.next_ = head_;
        if (head_)
            head_->prev_ = &hook;
        head_ = &hook;
        return true;
    }

    void remove(shutdown_hook& hook) noexcept
    {
        std::lock_guard lock(mutex_);
        (hook.prev_ ? hook.prev_->next_ : head_) = hook.next_;
        if (hook.next_)
            hook.next_->prev_ = hook.prev_;
    }

    void shutdown() noexcept
    {
        // Declared before the lock, so that handlers are destroyed after it is released: that may destroy hooks, which
        // call remove().
        async_op_list orphans;
        std::lock_guard lock(mutex_);
        closed_ = true;
        for (shutdown_hook* hook = head_; hook; hook = hook->next_)
            hook->shutdown(orphans);
    }

    void on_fork() noexcept
    {
        std::lock_guard lock(mutex_);
        for (shutdown_hook* hook = head_; hook; hook = hook->next_)
            hook->on_fork();
    }

private:
    std::mutex mutex_;
    shutdown_hook* head_ = nullptr;
    bool closed_ = false;
};

namespace {

class shutdown_service : public asio::execution_context::service {
public:
    using key_type = shutdown_service;
    static asio::execution_context::id id;

    explicit shutdown_service(asio::execution_context& ctx)
        : asio::execution_context::service(ctx), registry_(std::make_shared<shutdown_registry>())
    {}

    const std::shared_ptr<shutdown_registry>& registry() const noexcept { return registry_; }

private:
    void shutdown() override { registry_->shutdown(); }

    void notify_fork(asio::execution_context::fork_event event) override
    {
        if (event == asio::execution_context::fork_child)
            registry_->on_fork();
    }

    std::shared_ptr<shutdown_registry> registry_;
};

asio::execution_context::id shutdown_service::id;

} // namespace

struct held_executor::node final : async_op_base {
    explicit node(asio::any_io_executor ex) noexcept : executor(std::move(ex)) {}

    void post() override {}
    void destroy() noexcept override { delete this; }

    const asio::any_io_executor executor;
};

held_executor::held_executor(asio::any_io_executor ex) : held_(new node(std::move(ex))) {}

held_executor::~held_executor()
{
    delete held_;
}

const asio::any_io_executor& held_executor::get() const noexcept
{
    // Never destroyed: objects with static storage duration may use it.
    static const auto& none = *new asio::any_io_executor(asio::system_executor());
    return held_ ? held_->executor : none;
}

void held_executor::let_go(async_op_list& out) noexcept
{
    if (held_)
        out.push_back(*std::exchange(held_, nullptr));
}

shutdown_hook::~shutdown_hook()
{
    withdraw();
}

void shutdown_hook::enlist(const asio::any_io_executor& ex)
{
    auto& context = asio::query(ex, asio::execution::context);
    auto registry = asio::use_service<shutdown_service>(context).registry();
    if (registry->add(*this)) {
        registry_ = std::move(registry);
        return;
    }
    async_op_list orphans;
    shutdown(orphans);
}

void shutdown_hook::withdraw() noexcept
{
    if (auto registry = std::exchange(registry_, nullptr))
        registry->remove(*this);
}

} // namespace coaccel::detail
