#ifndef COACCEL_WORKER_PARENT_CONTEXT_END_HPP
#define COACCEL_WORKER_PARENT_CONTEXT_END_HPP

#include "context/context.hpp"

#include <coaccel/core/error.hpp>

#include <cstdint>

namespace coaccel::worker {

/// How the context of a worker ends: why, and when its requests may fail. The first reason counts. It knows no process;
/// the context passes what it observes.
class context_end {
public:
    bool dying() const noexcept { return stage_ != stage::alive; }
    /// The requests have failed, or were handed over.
    bool dead() const noexcept { return stage_ == stage::dead; }
    const error_code& reason() const noexcept { return why_; }
    detail::loss_cause cause() const noexcept { return cause_; }

    /// The reason of an end that is about to begin, or of one that began without a reason. Ignored if there is one.
    void explain(const error_code& why) noexcept
    {
        if (!why_)
            why_ = why;
    }

    /// The process in which the context ends. A forked child must not touch the worker, which belongs to its parent.
    enum class process : std::uint8_t { own, forked_child };

    /// The context accepts nothing more. Returns whether the worker must be ended too: not in a forked child, and not
    /// if the end has begun before.
    [[nodiscard]] bool begin(errc why, process where, detail::loss_cause cause) noexcept
    {
        if (dying())
            return false;
        stage_ = stage::dying;
        if (where == process::forked_child) {
            why_ = errc::context_lost;
            return false;
        }
        cause_ = cause;
        sent_invalid_data_ = why == errc::worker_corrupted;
        return true;
    }

    /// What may still write to memory that is used after the end of the context.
    struct writers {
        /// Copy threads that have not ended.
        bool copying = false;
        /// The worker writes to pinned buffers, or can write to memory that its successor will map.
        bool into_shared = false;
        /// The worker's process has not ended.
        bool worker = false;
    };

    /// Whether the requests must not fail yet, because their memory may still be written. A worker that sent invalid
    /// data may write anywhere in the memory that its successor will use. In a forked child there are no copy threads,
    /// and all memory except the pinned memory is private.
    bool must_wait(const writers& w, process where) const noexcept
    {
        return where == process::own && (w.copying || (w.worker && (w.into_shared || sent_invalid_data_)));
    }

    void finish() noexcept { stage_ = stage::dead; }

private:
    enum class stage : std::uint8_t { alive, dying, dead };

    stage stage_ = stage::alive;
    bool sent_invalid_data_ = false;
    detail::loss_cause cause_ = detail::loss_cause::outside;
    error_code why_;
};

} // namespace coaccel::worker

#endif
