#ifndef COACCEL_CONTEXT_LANES_OP_STATES_HPP
#define COACCEL_CONTEXT_LANES_OP_STATES_HPP

#include "context/lanes/hazards.hpp"
#include "context/recently_used.hpp"

#include <coaccel/core/op.hpp>

namespace coaccel::detail {

/// The uses of the states that ops change, such as random generators. Ops with the same state are ordered like ops that
/// write to the same buffer.
class op_states {
public:
    /// Identifies the state of an op; zero: it has none.
    static std::uint64_t id_of(const bound_op& o) noexcept
    {
        if (!o.info->state)
            return 0;
        const std::uint64_t own = o.info->state(o.op);
        return own == 0 ? 0 : own * library_count + static_cast<std::uint64_t>(o.info->lib) + 1;
    }

    /// Adds to `waits` the points that an op with this state must wait for.
    void collect(std::uint64_t id, frontier& waits)
    {
        if (const auto* known = states_.find(id))
            known->log.collect(access::write, waits);
    }

    /// Records that the op is at p.
    void note(std::uint64_t id, point p, const lane_clock& clock)
    {
        auto* state = states_.find(id);
        if (!state) {
            states_.make_room(most_states, [&clock](const entry& e) {
                frontier uses;
                e.log.collect_uses(clock, uses);
                return uses.empty();
            });
            state = &states_.add({id, {}});
        }
        state->log.note(access::write, all_elements, p, clock);
    }

    std::size_t size() const noexcept { return states_.size(); }

    /// More are kept only while their ops are on the way.
    static constexpr std::size_t most_states = 256;

private:
    struct entry {
        std::uint64_t id;
        access_log log;
    };

    recently_used<entry> states_;
};

} // namespace coaccel::detail

#endif
