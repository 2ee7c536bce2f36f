#include "cuda/driver/blocking_ops.hpp"

#include <new>
#include <utility>

namespace coaccel::cuda {

result<progress> blocking_ops::run(bound_op& op, std::function<error_code()> job)
{
    if (const auto* started = static_cast<const blocking_op*>(op.state)) {
        if (!started->done.load(std::memory_order_acquire))
            return progress::pending;
        if (started->answer)
            return started->answer;
        return progress::passed;
    }
    try {
        blocking_op& made = open_.emplace_back();
        made.job = std::move(job);
        op.state = &made;
        const bool started = helpers_.run([this, &made] {
            made.answer = helpers_.context_dead() ? make_error_code(errc::context_lost) : made.job();
            // From here on the op may be finished and destroyed.
            made.done.store(true, std::memory_order_release);
            notify_progress_();
        });
        if (started)
            return progress::pending;
        finish(op);
    } catch (const std::bad_alloc&) {
        finish(op);
    }
    return errc::out_of_memory;
}

void blocking_ops::finish(bound_op& op) noexcept
{
    const void* which = std::exchange(op.state, nullptr);
    if (which)
        open_.remove_if([&](const blocking_op& e) { return &e == which; });
}

} // namespace coaccel::cuda
