#ifndef COACCEL_DEVICE_COMPLETION_QUEUE_HPP
#define COACCEL_DEVICE_COMPLETION_QUEUE_HPP

#include <coaccel/core/detail/async_op.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace coaccel::detail {

/// Completions whose handlers any thread of one executor may call, in the order in which they were added. One thread at
/// a time adds, any thread calls.
///
/// A handler may block, throw, or run the executor itself. While it runs, the executor's other threads and the handler
/// itself must be able to reach the remaining completions. Therefore a runner is in the executor's queue whenever
/// completions are left. Posting each of them would achieve the same, but costs more than most handlers.
///
/// Completions wait in a ring, from which a thread takes one with a single atomic operation, and in a list with a lock
/// when the ring is full.
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
        if (!more.empty())
            put(more, post_runner);
    }

    /// Adds on a thread of the executor, which must then call `run` with the returned value.
    template <class PostRunner>
    [[nodiscard]] share add_and_take(async_op_list& more, PostRunner post_runner)
    {
        share mine;
        if (idle())
            mine.first = more.pop_front();
        if (!more.empty()) {
            put(more, post_runner);
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
        while (async_op_base* p = pop_ring())
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

    /// No completion waits. Called only by the thread that adds.
    bool idle() const noexcept
    {
        return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed) &&
               !listed_.load(std::memory_order_acquire);
    }

    template <class PostRunner>
    void put(async_op_list& more, PostRunner& post_runner)
    {
        // Not before those in the list.
        if (!listed_.load(std::memory_order_acquire)) {
            std::uint64_t tail = tail_.load(std::memory_order_relaxed);
            // Acquire: the place of a completion that was taken has been read.
            while (!more.empty() && tail - head_.load(std::memory_order_acquire) < ring_size)
                ring_[tail++ % ring_size].store(more.pop_front(), std::memory_order_relaxed);
            tail_.store(tail, std::memory_order_seq_cst);
        }
        if (!more.empty()) {
            const std::scoped_lock lock(mutex_);
            list_.append(more);
            listed_.store(true, std::memory_order_seq_cst);
        }
        ensure_runner(post_runner);
    }

    /// A runner that has begun clears the flag before it looks for completions. So one that is seen as posted here
    /// finds all that were added before.
    template <class PostRunner>
    void ensure_runner(PostRunner& post_runner)
    {
        if (!posted_.load(std::memory_order_seq_cst) && !posted_.exchange(true, std::memory_order_seq_cst))
            post_runner();
    }

    /// Null: the ring is empty.
    async_op_base* pop_ring() noexcept
    {
        std::uint64_t head = head_.load(std::memory_order_acquire);
        while (head != tail_.load(std::memory_order_seq_cst)) {
            async_op_base* const p = ring_[head % ring_size].load(std::memory_order_relaxed);
            // If it succeeds, no other thread has taken or replaced what was read.
            if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel, std::memory_order_acquire))
                return p;
        }
        return nullptr;
    }

    /// Null: all have been called, or other threads are calling them.
    async_op_base* pop() noexcept
    {
        if (async_op_base* const p = pop_ring())
            return p;
        if (!listed_.load(std::memory_order_seq_cst))
            return nullptr;
        const std::scoped_lock lock(mutex_);
        // Those in the list may have come after some in the ring that were missed above.
        if (async_op_base* const p = pop_ring())
            return p;
        async_op_base* const p = list_.pop_front();
        listed_.store(!list_.empty(), std::memory_order_release);
        return p;
    }

    template <class PostRunner>
    void call_those_left(calls& here, PostRunner& post_runner)
    {
        while (here.may_go_on()) {
            async_op_base* const next = pop();
            // Those added later are called by other threads.
            const bool last = head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_seq_cst) &&
                              !listed_.load(std::memory_order_seq_cst);
            if (!last)
                ensure_runner(post_runner);
            if (next)
                here.call(*next);
            if (last)
                return;
        }
    }

    /// A full batch, and more than most turns complete.
    static constexpr std::size_t ring_size = 128;

    static constexpr std::size_t cache_line = 64;

    /// How many were taken from the ring. Changed by every thread that calls handlers, therefore apart from the others.
    alignas(cache_line) std::atomic<std::uint64_t> head_{0};
    /// How many were put there.
    alignas(cache_line) std::atomic<std::uint64_t> tail_{0};
    /// A runner is in the executor's queue.
    std::atomic<bool> posted_{false};
    /// The list is not empty.
    std::atomic<bool> listed_{false};
    alignas(cache_line) std::array<std::atomic<async_op_base*>, ring_size> ring_{};
    std::mutex mutex_;
    /// Follow those in the ring.
    async_op_list list_;
};

} // namespace coaccel::detail

#endif
