#ifndef COACCEL_DEVICE_DURABLE_TRUST_HPP
#define COACCEL_DEVICE_DURABLE_TRUST_HPP

#include "context/context.hpp"

#include <cstddef>
#include <cstdint>

namespace coaccel::detail {

/// Whether the content of memory that outlives its contexts can be relied on. The memory is suspect after a loss that
/// may have left it half-written, until its user decides what becomes of it.
///
/// After a fault, all memory that the context could write is suspect, because a faulting kernel may have written
/// anywhere. After an end from outside, only memory with unfinished writers is.
class durable_trust {
public:
    bool suspect() const noexcept { return suspect_; }

    /// How an op that writes the memory has ended.
    enum class ending : std::uint8_t {
        done,
        /// With an error, on a context that goes on.
        failed,
        /// With its context.
        lost,
    };

    /// An op that writes it is on the context.
    void write_started() noexcept { ++writers_; }
    void write_ended(ending how) noexcept
    {
        // A context may be closed before the ops that it drops are reported.
        if (writers_ > 0)
            --writers_;
        interrupted_ |= how == ending::lost;
    }

    /// An op that overwrites all of it is on the context. Later ops run behind it, so they may use the memory.
    void overwrite_started() noexcept
    {
        suspect_ = false;
        ++writers_;
    }
    void overwrite_ended(ending how) noexcept
    {
        write_ended(how);
        suspect_ |= how == ending::failed;
    }

    /// The user relies on the content as it is.
    void trust() noexcept { suspect_ = false; }

    /// Whether a context could write the memory.
    enum class mapping : std::uint8_t { none, writable };

    /// The context was lost. The ops that were on it have ended or end with it.
    void context_lost(loss_cause cause, mapping where) noexcept
    {
        const bool interrupted = interrupted_ || writers_ > 0;
        suspect_ |= interrupted || (cause != loss_cause::outside && where == mapping::writable);
        interrupted_ = false;
        writers_ = 0;
    }

    /// The context was closed after all its work had ended.
    void context_closed() noexcept
    {
        interrupted_ = false;
        writers_ = 0;
    }

private:
    std::size_t writers_ = 0;
    /// A writer has ended with the context, whose loss is about to be reported.
    bool interrupted_ = false;
    bool suspect_ = false;
};

} // namespace coaccel::detail

#endif
