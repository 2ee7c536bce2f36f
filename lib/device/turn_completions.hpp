#ifndef COACCEL_DEVICE_TURN_COMPLETIONS_HPP
#define COACCEL_DEVICE_TURN_COMPLETIONS_HPP

#include "device/completion_queue.hpp"

#include <cstdint>

namespace coaccel::detail {

/// The caller of a device's turn. Only a turn called by the executor may call handlers.
enum class turn_caller : std::uint8_t { executor, initiator };

/// The operations that complete in a device's turns. At the end of a turn it decides where their handlers run: on a
/// thread of the device's execution context, without being posted, or on their own executors.
class turn_completions {
public:
    /// `here`: the execution context of the device, used only for comparison. Null: every handler is posted.
    explicit turn_completions(const asio::execution_context* here) noexcept : here_(here) {}

    void add(async_op_base& op) noexcept { done_.push_back(op); }
    /// Whether no operation has completed in this turn.
    bool empty() const noexcept { return done_.empty(); }

    /// Must be called before the next turn can begin on another thread, so that handlers are called in the order of
    /// completion. Returns the handlers that the executor's thread must call with `run`; none for an initiator.
    template <class PostRunner>
    [[nodiscard]] completion_queue::share end_turn(turn_caller caller, PostRunner post_runner)
    {
        async_op_list for_us;
        async_op_list for_others;
        while (async_op_base* p = done_.pop_front())
            (p->resumes_on(here_) ? for_us : for_others).push_back(*p);
        completion_queue::share mine;
        if (caller == turn_caller::executor)
            mine = queue_.add_and_take(for_us, post_runner);
        else
            queue_.add(for_us, post_runner);
        for_others.post_all();
        return mine;
    }

    template <class PostRunner>
    void run(completion_queue::share mine, PostRunner post_runner)
    {
        queue_.run(mine, post_runner);
    }

    template <class PostRunner>
    void run_posted(PostRunner post_runner)
    {
        queue_.run_posted(post_runner);
    }

    void take_all(async_op_list& out) noexcept
    {
        out.append(done_);
        queue_.take_all(out);
    }

private:
    const asio::execution_context* const here_;
    async_op_list done_;
    completion_queue queue_;
};

} // namespace coaccel::detail

#endif
