#ifndef COACCEL_CONTEXT_BUFFER_STORE_HPP
#define COACCEL_CONTEXT_BUFFER_STORE_HPP

#include "context/buffer_table.hpp"
#include "context/lane_set.hpp"
#include "context/op_problem.hpp"
#include "context/operands.hpp"

#include <coaccel/detail/transfer_ops.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// The buffers of a context. Their memory goes back when nothing uses it any more, or in the order of the one lane that
/// still does.
template <backend B>
class buffer_store {
public:
    buffer_store(B& b, lane_set<B>& lanes, context_identity identity) noexcept
        : backend_(b), lanes_(lanes), table_(identity)
    {}

    void adopt(context_identity identity) noexcept { table_.adopt(identity); }
    std::size_t live() const noexcept { return table_.live(); }

    /// The buffer behind a ref, or why the ref may not be used as `type`.
    result<buffer_table::slot*> find(const any_ref& ref, dtype type) noexcept { return table_.find(ref, type); }

    /// Why `find` refused operand i of an op.
    error_code refusal(const bound_op& o, std::size_t i, const error_code& why) const noexcept
    {
        return operand_error(o, i, errc_of(why), table_.identity(), table_.facts(operand_of(o, i)));
    }

    access_log& log(std::uint32_t slot) noexcept { return table_.log(slot); }

    /// Pending: the memory is on its way, and is to be asked for again. Out of memory is an answer only when no
    /// released memory is still in use, or when all of it would not be enough.
    result<progress> allocate(const allocate_op& op, allocation& out)
    {
        if (!lane_) {
            BOOST_OUTCOME_TRY(lane_, lanes_.for_allocations());
        }
        const auto memory = backend_.allocate(lane_->work, *op.bytes(), op.kind);
        if (!memory)
            return wait_or_fail(memory.error(), op);
        if (!memory.value())
            return progress::pending;
        const any_ref made = table_.insert(memory.value(), op.count, op.type, op.kind);
        out = {made, op.kind == memory_kind::managed ? memory.value() : nullptr};
        ++lane_->last_ticket;
        ++lane_->taken_off;
        table_.log(made.slot).note(access::write, {lane_->id, lane_->last_ticket});
        return progress::passed;
    }

    /// Unknown and stale refs are ignored.
    void release(const any_ref& buffer) noexcept
    {
        if (auto retired = table_.retire(buffer); retired && !give_back(*retired))
            retiring_.push_back(std::move(*retired));
    }

    /// Of a backend that is dead: the memory goes with it.
    void forget(const any_ref& buffer) noexcept { (void)table_.retire(buffer); }

    /// Gives back what was still in use when it was released.
    void give_back_unused() noexcept
    {
        std::erase_if(retiring_, [this](const retired_buffer& b) { return give_back(b); });
    }

    /// Whether an allocation waits for released memory that is still in use. Later allocations wait behind it, because
    /// they would take what it waits for.
    bool starving() const noexcept { return starving_; }

    /// The allocation that waits for released memory is not wanted any more.
    void stop_starving() noexcept { starving_ = false; }

    /// Whether allocations that wait are worth another try; if so none counts as starving from then on.
    bool try_again() noexcept
    {
        const bool awaited_is_back = !awaited_.empty() && all_back(awaited_);
        if (starving_ && !came_back_ && !awaited_is_back && released_in_use())
            return false;
        starving_ = false;
        return true;
    }

private:
    /// Whether the backend can hand memory out again in the order of a stream that still uses it.
    static constexpr bool in_stream_order = requires { requires B::releases_in_stream_order; };

    result<progress> wait_or_fail(error_code ec, const allocate_op& op)
    {
        if (errc_of(ec) != errc::out_of_memory || !released_in_use() || *op.bytes() > most_memory(op.kind))
            return ec;
        starving_ = true;
        came_back_ = false;
        // What is released in stream order from here on does not prolong the wait.
        awaited_ = returning_;
        return progress::pending;
    }

    /// What a buffer could get if there were no other, as far as is known.
    std::uint64_t most_memory(memory_kind kind) const noexcept
    {
        auto most = std::numeric_limits<std::uint64_t>::max();
        if constexpr (requires { backend_.memory_limit(); })
            most = backend_.memory_limit();
        // Managed memory may be larger than the device's.
        const auto total = kind == memory_kind::device ? backend_.memory().total : 0;
        return total != 0 ? std::min<std::uint64_t>(most, total) : most;
    }

    bool released_in_use() const noexcept { return !retiring_.empty() || !all_back(returning_); }

    /// Whether the memory released behind these points is free. Where more is on the lane, the end of that shows it.
    bool all_back(const frontier& points) const noexcept
    {
        return std::ranges::all_of(points, [this](const point& p) {
            const auto& order = lanes_.order();
            return order.passed(p) && (lanes_[p.lane].flights.empty() || order.passed({p.lane, p.ticket + 1}));
        });
    }

    /// False: not yet.
    bool give_back(const retired_buffer& b) noexcept
    {
        frontier uses;
        b.log.collect_uses(lanes_.order(), uses);
        // Whoever uses the memory has waited for its allocation.
        if (const auto made = std::ranges::find(uses, lane_->id, &point::lane); made != uses.end())
            uses.erase(made);
        if (uses.empty()) {
            backend_.release(lane_->work, b.memory, b.bytes, b.kind);
            came_back_ = true;
            return true;
        }
        const point last = uses.front();
        if (!in_stream_order || uses.size() > 1 || b.kind != memory_kind::device || !lanes_.has_taken_off(last))
            return false;
        auto& user = lanes_[last.lane];
        if (!user.has_room_for_free())
            return false;
        backend_.release(user.work, b.memory, b.bytes, b.kind);
        user.note_free();
        advance(returning_, last);
        return true;
    }

    B& backend_;
    lane_set<B>& lanes_;
    lane<B>* lane_ = nullptr;
    buffer_table table_;
    /// Released, and in use where the backend cannot know of it.
    std::vector<retired_buffer> retiring_;
    /// Where memory was released in stream order, the latest place on each lane.
    frontier returning_;
    /// What there was of it when an allocation began to wait.
    frontier awaited_;
    bool starving_ = false;
    bool came_back_ = false;
};

} // namespace coaccel::detail

#endif
