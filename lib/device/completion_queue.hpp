#ifndef COACCEL_DEVICE_COMPLETION_QUEUE_HPP
#define COACCEL_DEVICE_COMPLETION_QUEUE_HPP

#include <coaccel/detail/pending.hpp>

#include <atomic>
#include <mutex>
#include <utility>

namespace coaccel::detail {

/// Completions whose handlers any thread of one executor may call, in the order in which they were added. One
/// thread at a time adds, any thread calls.
///
/// A handler may block, throw, or run the executor itself: while it is called, those behind it must be within reach of
/// the executor's other threads, and of the handler. So a runner is in the executor's queue whenever there are any. A
/// post for each of them would do the same, but costs more than most handlers do.
class completion_queue {
public:
    completion_queue() = default;
    completion_queue(const completion_queue&) = delete;
    completion_queue& operator=(const completion_queue&) = delete;

    ~completion_queue()
    {
        pending_list left;
        take_all(left);
    }

    /// The handlers that a thread of the executor calls after it has added completions.
    struct share {
        /// Null: earlier completions are still in the queue.
        pending* first = nullptr;
        /// There may be more.
        bool more = false;
    };

    /// Adds where no handler may be called. `post_runner` posts a runner: a function that calls `run_posted`.
    template <class PostRunner>
    void add(pending_list& more, PostRunner post_runner)
    {
        // The usual case is a single completion, which needs no lock.
        if (more.has_one() && idle() && !posted_.load(std::memory_order_acquire)) {
            posted_.store(true, std::memory_order_relaxed);
            single_.store(more.pop_front(), std::memory_order_release);
            post_runner();
        } else if (!more.empty()) {
            add_to_list(more, post_runner);
        }
    }

    /// Adds on a thread of the executor, which then calls `run` with what this returns.
    template <class PostRunner>
    [[nodiscard]] share add_and_take(pending_list& more, PostRunner post_runner)
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
        // A thread that adds after this posts another runner; what was added before is seen below.
        posted_.store(false, std::memory_order_seq_cst);
        calls here;
        call_those_left(here, post_runner);
    }

    void take_all(pending_list& out) noexcept
    {
        if (pending* p = single_.exchange(nullptr, std::memory_order_acquire))
            out.push_back(*p);
        const std::scoped_lock lock(mutex_);
        out.append(list_);
        listed_.store(false, std::memory_order_relaxed);
    }

private:
    /// Calls a limited number of handlers, so that other functions in the executor's queue run in between. The limit is
    /// one if a handler runs the executor itself: that handler continues as soon as the call it waits for was made.
    class calls {
    public:
        calls() noexcept : left_(nesting++ == 0 ? most_at_once : 1) {}
        calls(const calls&) = delete;
        calls& operator=(const calls&) = delete;
        ~calls() { --nesting; }

        bool may_go_on() const noexcept { return left_ > 0; }

        void call(pending& p)
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
        /// Null: all have been called, or are being called by others.
        pending* next = nullptr;
        /// There is none behind it. Those that are added later are called by others.
        bool last = true;
    };

    /// Nothing waits to be called. Only for the thread that adds.
    bool idle() const noexcept
    {
        return !listed_.load(std::memory_order_acquire) && !single_.load(std::memory_order_acquire);
    }

    template <class PostRunner>
    void add_to_list(pending_list& more, PostRunner& post_runner)
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
            // One that was added before those of the list may have been missed above.
            if (!s.next)
                s.next = single_.exchange(nullptr, std::memory_order_acquire);
            if (!s.next)
                s.next = list_.pop_front();
            s.last = list_.empty();
            // Release: a thread that adds and sees the list empty also sees whether a runner is posted.
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
    /// Comes before those of the list.
    std::atomic<pending*> single_{nullptr};
    /// There are some in the list.
    std::atomic<bool> listed_{false};
    std::mutex mutex_;
    pending_list list_;
};

} // namespace coaccel::detail

#endif
