#ifndef COACCEL_DEVICE_DURABLE_STATE_HPP
#define COACCEL_DEVICE_DURABLE_STATE_HPP

#include "context/exported_memory.hpp"
#include "device/durable_trust.hpp"
#include "device/kept_error.hpp"

#include <coaccel/plan/detail/plan_data.hpp>

#include <memory>

namespace coaccel::detail {

/// A durable state of a plan, or of several plans of a set. The plans own it, whatever becomes of the contexts.
struct durable_state {
    /// Null until a context has made it.
    std::shared_ptr<const exported_memory> memory;
    durable_trust trust;
    /// The current context may have mapped it: from the submission of the import on, not from its end.
    bool here = false;
    /// Why the memory cannot be used in the current context. The next one tries again.
    kept_error unusable;

    void context_lost(loss_cause cause) noexcept
    {
        using mapping = durable_trust::mapping;
        trust.context_lost(cause, here ? mapping::writable : mapping::none);
        leave_context();
    }

    void context_closed() noexcept
    {
        trust.context_closed();
        leave_context();
    }

    /// It is made anew with its initial content, by the next load.
    void discard() noexcept
    {
        memory.reset();
        unusable = {};
        trust.trust();
    }

private:
    void leave_context() noexcept
    {
        here = false;
        unusable = {};
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
