#include <coaccel/detail/shutdown_hook.hpp>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>

#include <mutex>

namespace coaccel::detail {

// Shared between the service and its hooks: a hook may be destroyed after the context is gone.
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
        // Declared before the lock: destroying handlers may destroy hooks, which come back to remove().
        pending_list orphans;
        std::lock_guard lock(mutex_);
        closed_ = true;
        for (shutdown_hook* hook = head_; hook; hook = hook->next_)
            hook->shutdown(orphans);
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

    std::shared_ptr<shutdown_registry> registry_;
};

asio::execution_context::id shutdown_service::id;

} // namespace

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
    pending_list orphans;
    shutdown(orphans);
}

void shutdown_hook::withdraw() noexcept
{
    if (auto registry = std::exchange(registry_, nullptr))
        registry->remove(*this);
}

} // namespace coaccel::detail
