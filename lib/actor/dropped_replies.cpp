#include <coaccel/actor/detail/dropped_replies.hpp>

#include <string>
#include <utility>

namespace coaccel::detail {
namespace {

thread_local const drop_scope* innermost = nullptr;

// Omits the text when there is no memory for it.
error_code explain(errc what, const char* begin, const std::string& text) noexcept
{
    try {
        return make_error_with_message(what, begin + text);
    } catch (...) {
        return what;
    }
}

} // namespace

drop_scope::drop_scope(const error_code& reason) noexcept : reason_(reason), outer_(std::exchange(innermost, this)) {}

drop_scope::~drop_scope()
{
    innermost = outer_;
}

const error_code* drop_scope::current() noexcept
{
    return innermost ? &innermost->reason_ : nullptr;
}

void dropped_replies::begin() noexcept
{
    handling_.store(true, std::memory_order_relaxed);
}

bool dropped_replies::hold(std::shared_ptr<dropped_reply> reply) noexcept
{
    const std::scoped_lock lock(mutex_);
    try {
        if (!handling_.load(std::memory_order_relaxed))
            return false;
        held_.push_back(std::move(reply));
        holding_.store(true, std::memory_order_relaxed);
        return true;
    } catch (...) {
        return false;
    }
}

void dropped_replies::end_turn()
{
    answer(errc::no_reply);
}

void dropped_replies::end(error_code failure)
{
    handling_.store(false, std::memory_order_relaxed);
    // A reply that another thread drops concurrently may be missed here; the posted end_turn() answers it.
    if (holding_.load(std::memory_order_relaxed))
        answer(failure ? failure : error_code(errc::no_reply));
}

void dropped_replies::answer(error_code ec)
{
    std::unique_lock lock(mutex_);
    const auto held = std::exchange(held_, {});
    holding_.store(false, std::memory_order_relaxed);
    lock.unlock();
    for (const auto& reply : held)
        reply->answer(ec);
}

error_code thrown_failure(const std::exception_ptr& thrown) noexcept
{
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
        return explain(errc::actor_failed, "the actor threw: ", e.what());
    } catch (...) {
        return explain(errc::actor_failed, "the actor threw something not derived from std::exception", {});
    }
}

error_code failed_in_hand(const error_code& failure) noexcept
{
    return failure == errc::actor_failed
               ? failure
               : explain(errc::actor_failed, "the actor failed while it held the message: ", failure.message());
}

error_code stopped_because(const error_code& reason) noexcept
{
    return reason ? explain(errc::actor_stopped, "the actor has stopped: ", reason.message())
                  : error_code(errc::actor_stopped);
}

} // namespace coaccel::detail
