#include "serve/member_copies.hpp"

#include "device/blocking_pool.hpp"
#include "posix/fork_detector.hpp"

namespace coaccel::detail {

bool member_copies::job::lost() const noexcept
{
    return fork_count() != forks_;
}

member_copies::job_ptr member_copies::start_job(boost::asio::execution_context& where, std::function<void()> copy,
                                                std::function<void()> done)
{
    // Its constructor begins to count forks.
    auto& pool = boost::asio::use_service<blocking_pool>(where);
    if (!state_ || fork_count() != forks_) {
        state_ = std::make_shared<state>();
        forks_ = fork_count();
    }
    auto mine = std::make_shared<job>();
    mine->forks_ = forks_;
    auto run = [state = state_, mine, copy = std::move(copy), done = std::move(done)] {
        {
            const std::scoped_lock lock(state->mutex);
            if (state->finished || mine->now_ == job::step::withdrawn)
                return;
            mine->now_ = job::step::begun;
            ++state->running;
        }
        copy();
        {
            const std::scoped_lock lock(state->mutex);
            --state->running;
        }
        state->ended.notify_all();
        done();
    };
    return pool.run(blocking_pool::kind::copying, std::move(run)) ? mine : nullptr;
}

/// In a forked child a thread of the parent may have held the mutex at the fork; there it is not locked.
std::unique_lock<std::mutex> member_copies::lock_for(const job& j) const
{
    return j.lost() ? std::unique_lock<std::mutex>() : std::unique_lock(state_->mutex);
}

void member_copies::finish() noexcept
{
    // In a forked child the threads do not exist.
    if (!state_ || fork_count() != forks_)
        return;
    std::unique_lock lock(state_->mutex);
    state_->finished = true;
    state_->ended.wait(lock, [this] { return state_->running == 0; });
}

} // namespace coaccel::detail
