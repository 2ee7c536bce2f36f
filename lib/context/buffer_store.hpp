#ifndef COACCEL_CONTEXT_BUFFER_STORE_HPP
#define COACCEL_CONTEXT_BUFFER_STORE_HPP

#include "context/buffer_table.hpp"
#include "context/lane_set.hpp"

#include <coaccel/detail/transfer_ops.hpp>

#include <algorithm>
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
    access_log& log(std::uint32_t slot) noexcept { return table_.log(slot); }

    /// Pending: the memory is on its way, and is to be asked for again.
    result<progress> allocate(const allocate_op& op, allocation& out)
    {
        if (!lane_) {
            BOOST_OUTCOME_TRY(lane_, lanes_.for_allocations());
        }
        const auto memory = backend_.allocate(lane_->work, *op.bytes(), op.kind);
        if (!memory)
            return memory.error();
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

private:
    /// False: not yet.
    bool give_back(const retired_buffer& b) noexcept
    {
        frontier uses;
        b.log.collect_uses(lanes_.order(), uses);
        // Whoever uses the memory has waited for its allocation.
        if (const auto made = std::ranges::find(uses, lane_->id, &point::lane); made != uses.end())
            uses.erase(made);
        const bool one_lane = uses.size() == 1 && b.kind == memory_kind::device && lanes_.has_taken_off(uses.front());
        if (!uses.empty() && !one_lane)
            return false;
        auto& l = uses.empty() ? *lane_ : lanes_[uses.front().lane];
        backend_.release(l.work, b.memory, b.bytes, b.kind);
        return true;
    }

    B& backend_;
    lane_set<B>& lanes_;
    lane<B>* lane_ = nullptr;
    buffer_table table_;
    std::vector<retired_buffer> retiring_;
};

} // namespace coaccel::detail

#endif
