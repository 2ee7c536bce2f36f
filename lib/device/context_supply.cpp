#include "device/context_supply.hpp"

#include "posix/fork_detector.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace coaccel::detail {
namespace {

std::uint32_t forks_until_now() noexcept
{
    watch_forks();
    return fork_count();
}

/// An object of a forked child that must not be destroyed.
template <class T>
void leak(T object)
{
    (void)new auto(std::move(object));
}

} // namespace

context_supply::context_supply(const device_executor& ex, result<context_source> found)
    : executor_(ex), forks_(forks_until_now())
{
    if (found)
        source_ = std::move(found).value();
    else
        unusable_ = found.error();
}

bool context_supply::orphaned() const noexcept
{
    if (source_.isolated)
        return forked();
    return source_.blocks && fork_count() != forks_;
}

error_code context_supply::run(blocking_pool::kind what, std::function<void()> job)
{
    return run(what, std::move(job), {});
}

error_code context_supply::run_creation(std::function<void()> job)
{
    return run(blocking_pool::kind::contexts, std::move(job), source_.give_up);
}

error_code context_supply::run(blocking_pool::kind what, std::function<void()> job, std::function<void()> hurry)
try {
    if (!source_.blocks) {
        job();
        return {};
    }
    auto& where = asio::query(executor_.get(), asio::execution::context);
    if (!asio::use_service<blocking_pool>(where).run(what, std::move(job), std::move(hurry)))
        return make_error_with_message(errc::start_failed, "no helper thread of the device could be started");
    return {};
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
} catch (const std::system_error& e) {
    return make_error_with_message(errc::start_failed, std::string("a helper thread of the device: ") + e.what());
}

void context_supply::run_end(std::function<void()> job)
{
    const auto shared = std::make_shared<std::function<void()>>(std::move(job));
    if (run(blocking_pool::kind::contexts, [shared] { std::exchange(*shared, nullptr)(); }))
        (*shared)();
}

void context_supply::drop_factory()
{
    if (!source_.make)
        return;
    auto last = std::make_shared<context_factory>(take_factory());
    if (orphaned())
        return leak(std::move(last));
    run_end([last = std::move(last)]() mutable { last.reset(); });
}

context_source context_supply::take_all()
{
    const bool is_orphan = orphaned();
    auto source = std::exchange(source_, {});
    if (!is_orphan)
        return source;
    leak(std::move(source));
    return {};
}

} // namespace coaccel::detail
