#ifndef COACCEL_SERVE_MEMBER_COPIES_HPP
#define COACCEL_SERVE_MEMBER_COPIES_HPP

#include <boost/asio/execution_context.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace coaccel::detail {

/// Copies between the memory of callers and that of batches, on threads other than those of the executor. The threads
/// belong to the execution context.
///
/// Thread safety: one thread at a time.
class member_copies {
public:
    /// A copy that waits for a thread, runs or has ended.
    class job {
    public:
        /// This is a forked child of the process whose thread was to copy: the copy never ends here.
        bool lost() const noexcept;

    private:
        friend class member_copies;

        enum class step : std::uint8_t { waiting, begun, withdrawn };

        /// Changed under the mutex of the state.
        step now_ = step::waiting;
        std::uint32_t forks_ = 0;
    };

    using job_ptr = std::shared_ptr<job>;

    /// Starts a copy. `done` is called on its thread when it has ended; not if it never begins, because of withdraw(),
    /// of finish(), or because the execution context is being destroyed. Neither may throw. Null: there is no thread or
    /// no memory for it, and nothing is called.
    template <class Copy, class Done>
    [[nodiscard]] job_ptr start(boost::asio::execution_context& where, Copy copy, Done done)
    {
        try {
            return start_job(where, std::move(copy), std::move(done));
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }

    /// Calls f if the copy has not begun and before it begins, so that f can change what is copied. False: it has
    /// begun.
    template <class Function>
    [[nodiscard]] bool before(job& j, Function f)
    {
        const auto lock = lock_for(j);
        if (j.now_ == job::step::begun && !j.lost())
            return false;
        f();
        return true;
    }

    /// Lets the copy not begin. False: it has begun.
    [[nodiscard]] bool withdraw(job& j)
    {
        return before(j, [&j] { j.now_ = job::step::withdrawn; });
    }

    /// Returns when no copy is running. Those that have not begun will not.
    void finish() noexcept;

private:
    /// Owned by the jobs, too, which may begin after the batcher is gone.
    struct state {
        std::mutex mutex;
        std::condition_variable ended;
        std::uint32_t running = 0;
        bool finished = false;
    };

    job_ptr start_job(boost::asio::execution_context& where, std::function<void()> copy, std::function<void()> done);
    std::unique_lock<std::mutex> lock_for(const job& j) const;

    /// Null before the first copy.
    std::shared_ptr<state> state_;
    /// The fork count of the process that has the threads.
    std::uint32_t forks_ = 0;
};

} // namespace coaccel::detail

#endif
