#ifndef COACCEL_DEVICE_DURABLE_STATE_HPP
#define COACCEL_DEVICE_DURABLE_STATE_HPP

#include "context/exported_memory.hpp"
#include "device/durable_trust.hpp"

#include <coaccel/plan/detail/plan_data.hpp>

#include <memory>

namespace coaccel::detail {

/// A durable state of a plan, or of several plans of a set. The plans own it, whatever becomes of the contexts.
struct durable_state {
    /// Null until a context has made it.
    std::shared_ptr<const exported_memory> memory;
    durable_trust trust;
    /// It has a buffer in the current context.
    bool here = false;

    void context_lost(loss_cause cause) noexcept
    {
        using mapping = durable_trust::mapping;
        trust.context_lost(cause, here ? mapping::writable : mapping::none);
        here = false;
    }

    void context_closed() noexcept
    {
        trust.context_closed();
        here = false;
    }
};

/// What the next context does with a state whose memory exists.
enum class state_revival : std::uint8_t {
    use,    ///< Runs continue with its content.
    refill, ///< It gets its initial content.
    refuse, ///< It stays suspect, and runs are refused.
};

inline state_revival revival_of(suspect_rule rule, bool suspect) noexcept
{
    if (!suspect || rule == suspect_rule::keep)
        return state_revival::use;
    return rule == suspect_rule::reset ? state_revival::refill : state_revival::refuse;
}

} // namespace coaccel::detail

#endif
