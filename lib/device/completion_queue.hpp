#ifndef COACCEL_DEVICE_COMPLETION_QUEUE_HPP
#define COACCEL_DEVICE_COMPLETION_QUEUE_HPP

#include <coaccel/core/detail/async_op.hpp>

#include <atomic>
#include <mutex>
#include <utility>

namespace coaccel::detail {

/// Completions whose handlers any thread of one executor may call, in the order in which they were added. One thread at
/// a time adds, any thread calls.
///
/// A handler may block, throw, or run the executor itself. While it runs, the executor's other threads and the handler
/// itself must be able to reach the remaining completions. Therefore a runner is in the executor's queue whenever
/// completions are left. Posting each of them would achieve the same, but costs more than most handlers.
class completion_queue {
public:
    completion_queue() = default;
    completion_queue(const completion_queue&) = delete;
    completion_queue& operator=(const completion_queue&) = delete;

    ~completion_queue()
    {
        async_op_list left;
        take_all(left);
    }

    /// The completions that a thread of the executor must run after adding.
    struct share {
        /// Null: earlier completions are still waiting.
        async_op_base* first = nullptr;
        /// There may be more to call.
        bool more = false;
    };

    /// Adds in a place where handlers must not be called. `post_runner` posts a runner: a function that calls
    /// `run_posted`.
    template <class PostRunner>
    void add(async_op_list& more, PostRunner post_runner)
    {
        // Usually there is only one, which needs no lock.
        if (more.has_one() && idle() && !posted_.load(std::memory_order_acquire)) {
            posted_.store(true, std::memory_order_relaxed);
            single_.store(more.pop_front(), std::memory_order_release);
            post_runner();
        } else if (!more.empty()) {
            add_to_list(more, post_runner);
        }
    }

    /// Adds on a thread of the executor, which must then call `run` with the returned value.
    template <class PostRunner>
    [[nodiscard]] share add_and_take(async_op_list& more, PostRunner post_runner)
    {
        share mine;
        if (idle())
            mine.first = more.pop_front();
        if (!more.empty()) {
            add_to_list(more, post_runner);
            mine.more = true;
        }
        return mine;
    }

    template <class PostRunner>
    void run(share mine, PostRunner post_runner)
    {
        calls here;
        if (mine.first)
            here.call(*mine.first);
        if (mine.more)
            call_those_left(here, post_runner);
    }

    template <class PostRunner>
    void run_posted(PostRunner post_runner)
    {
        // A thread that adds later posts another runner; completions added earlier are seen below.
        posted_.store(false, std::memory_order_seq_cst);
        calls here;
        call_those_left(here, post_runner);
    }

    void take_all(async_op_list& out) noexcept
    {
        if (async_op_base* p = single_.exchange(nullptr, std::memory_order_acquire))
            out.push_back(*p);
        const std::scoped_lock lock(mutex_);
        out.append(list_);
        listed_.store(false, std::memory_order_relaxed);
    }

private:
    /// Calls a limited number of handlers, so that other work on the executor can run in between. In a handler that
    /// runs the executor the limit is one, because that handler continues when the completion it waits for has been
    /// called.
    class calls {
    public:
        calls() noexcept : left_(nesting++ == 0 ? most_at_once : 1) {}
        calls(const calls&) = delete;
        calls& operator=(const calls&) = delete;
        ~calls() { --nesting; }

        bool may_go_on() const noexcept { return left_ > 0; }

        void call(async_op_base& p)
        {
            --left_;
            p.resume();
        }

    private:
        static constexpr int most_at_once = 64;
        static inline thread_local int nesting = 0;

        int left_;
    };

    struct step {
        /// Null: all have been called, or other threads are calling them.
        async_op_base* next = nullptr;
        /// No completion follows. Those added later are called by other threads.
        bool last = true;
    };

    /// No completion waits. Called only by the thread that adds.
    bool idle() const noexcept
    {
        return !listed_.load(std::memory_order_acquire) && !single_.load(std::memory_order_acquire);
    }

    template <class PostRunner>
    void add_to_list(async_op_list& more, PostRunner& post_runner)
    {
        bool post = false;
        {
            const std::scoped_lock lock(mutex_);
            list_.append(more);
            listed_.store(true, std::memory_order_seq_cst);
            post = !posted_.exchange(true, std::memory_order_seq_cst);
        }
        if (post)
            post_runner();
    }

    template <class PostRunner>
    step take(PostRunner& post_runner)
    {
        step s;
        if (single_.load(std::memory_order_relaxed))
            s.next = single_.exchange(nullptr, std::memory_order_acquire);
        if (!listed_.load(std::memory_order_seq_cst))
            return s;
        bool post = false;
        {
            const std::scoped_lock lock(mutex_);
            // A single completion added before those in the list may have been missed above.
            if (!s.next)
                s.next = single_.exchange(nullptr, std::memory_order_acquire);
            if (!s.next)
                s.next = list_.pop_front();
            s.last = list_.empty();
            // Release: a thread that adds and sees the empty list also sees whether a runner is posted.
            listed_.store(!s.last, std::memory_order_release);
            post = !s.last && !posted_.exchange(true, std::memory_order_seq_cst);
        }
        if (post)
            post_runner();
        return s;
    }

    template <class PostRunner>
    void call_those_left(calls& here, PostRunner& post_runner)
    {
        while (here.may_go_on()) {
            const step s = take(post_runner);
            if (s.next)
                here.call(*s.next);
            if (s.last)
                return;
        }
    }

    /// A runner is in the executor's queue.
    std::atomic<bool> posted_{false};
    /// Precedes the completions in the list.
    std::atomic<async_op_base*> single_{nullptr};
    /// The list is not empty.
    std::atomic<bool> listed_{false};
    std::mutex mutex_;
    async_op_list list_;
};

} // namespace coaccel::detail

#endif
